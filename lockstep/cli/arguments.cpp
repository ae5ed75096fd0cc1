// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/suggest.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::cli {
namespace {

using rendezvous::quote;

bool is_help(const CLI::App& app, const CLI::Option* option) {
  return option && (option == app.get_help_ptr() || option == app.get_version_ptr());
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

template <typename T>
std::optional<T> whole_text_as(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// A flag as it was typed, and the value that stands in the same argument.
struct Typed {
  std::string flag;
  std::optional<std::string> value;
};

Typed split(const std::string& argument) {
  const std::size_t end = argument.starts_with("--") ? argument.find('=') : 2;
  if (end >= argument.size()) return {argument, std::nullopt};
  return {argument.substr(0, end), argument.substr(end + (argument[end] == '=' ? 1 : 0))};
}

// None when the option takes any text.
const CLI::Validator* validator_of(CLI::Option& option) {
  try {
    return option.get_validator(0);
  } catch (const CLI::OptionNotFound&) {
    return nullptr;
  }
}

void check_value(CLI::Option& option, const std::string& flag, std::string value) {
  const CLI::Validator* validator = validator_of(option);
  const std::string expected = validator ? (*validator)(value) : std::string();
  if (!expected.empty()) throw UsageError(fmt::format("{} is {}: expected {}", flag, quote(value), expected));
}

class Check {
 public:
  Check(CLI::App& command, std::string_view name) : command_(command), name_(name) {}

  // False when the rest does not matter: help was asked for.
  bool run(Arguments arguments) {
    bool flags_ended = false;
    while (!arguments.empty()) {
      const std::string& argument = arguments.front();
      if (flags_ended || !is_flag(argument)) {
        take_positional(argument);
      } else if (argument == "--") {
        flags_ended = true;
      } else if (is_help(command_, option_of(command_, argument))) {
        return false;
      } else if (take_flag(argument, arguments.subspan(1))) {
        arguments = arguments.subspan(1);
      }
      arguments = arguments.subspan(1);
    }
    return true;
  }

  void expect_all() const {
    const std::vector<const CLI::Option*> wanted = positionals();
    if (taken_ < wanted.size() && wanted[taken_]->get_required()) refuse_absence_of(*wanted[taken_]);
    for (const CLI::Option* option : command_.get_options()) {
      const bool absent = option->nonpositional() && !seen_.contains(option);
      if (absent && option->get_required()) refuse_absence_of(*option);
    }
  }

 private:
  [[noreturn]] void refuse_absence_of(const CLI::Option& option) const {
    const std::string what = option.get_name(option.get_positional());
    throw UsageError(fmt::format("{0} needs {1}: `{0} --help` explains it", name_, what));
  }

  std::vector<const CLI::Option*> positionals() const {
    return std::as_const(command_).get_options(
        [](const CLI::Option* option) { return option->get_positional(); });
  }

  // True when the first of the following arguments is its value.
  bool take_flag(const std::string& argument, Arguments following) {
    CLI::Option* option = option_of(command_, argument);
    const auto [flag, value] = split(argument);
    if (!option) refuse_unknown(fmt::format("flag of {}", name_), flag, flag_names(command_), name_);
    if (!seen_.insert(option).second) throw UsageError(fmt::format("{} is given twice", flag));
    const bool takes_value = option->get_items_expected_max() > 0;
    if (!takes_value && value) throw UsageError(fmt::format("{} takes no value: write it alone", flag));
    if (!takes_value) return false;
    const bool follows = !following.empty() && option_of(command_, following.front()) == nullptr;
    if (value ? value->empty() : !follows)
      throw UsageError(fmt::format("{} needs a value: `{} --help` explains it", flag, name_));
    check_value(*option, flag, value ? *value : following.front());
    return !value;
  }

  void take_positional(const std::string& argument) {
    const std::vector<const CLI::Option*> wanted = positionals();
    if (taken_ > 0 && wanted[taken_ - 1]->get_items_expected_max() > 1) return;
    if (taken_ == wanted.size()) {
      throw UsageError(
          fmt::format("{} does not take {}: `{} --help` lists what it takes", name_, quote(argument), name_));
    }
    ++taken_;
  }

  CLI::App& command_;
  std::string_view name_;
  std::set<const CLI::Option*> seen_;
  std::size_t taken_ = 0;
};

}  // namespace

void refuse_unknown(std::string_view what, std::string_view typed, Arguments known, std::string_view help) {
  const std::string meant = closest(typed, known);
  const std::string hint =
      meant.empty() ? fmt::format("`{} --help` lists them", help) : fmt::format("did you mean '{}'?", meant);
  throw UsageError(fmt::format("unknown {} {}: {}", what, quote(typed), hint));
}

void expect_one_of(std::string_view flag, std::string_view typed, Arguments known) {
  if (std::find(known.begin(), known.end(), typed) != known.end()) return;
  throw UsageError(fmt::format("{} is {}: {}", flag, quote(typed), expected_name(typed, known)));
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  return {[=](std::string& text) {
            const auto value = whole_text_as<std::int64_t>(text);
            return value && *value >= least && *value <= most ? std::string() : expected;
          },
          ""};
}

CLI::Validator number(double least, double most) {
  const std::string expected = fmt::format("a number from {} to {}", least, most);
  return {[=](std::string& text) {
            const auto value = whole_text_as<double>(text);
            return value && *value >= least && *value <= most ? std::string() : expected;
          },
          ""};
}

bool is_flag(std::string_view argument) {
  return argument.size() > 1 && argument.front() == '-';
}

CLI::Option* option_of(CLI::App& command, std::string_view argument) {
  return command.get_option_no_throw(split(std::string(argument)).flag);
}

bool takes_next(const CLI::Option& option, std::string_view argument) {
  return option.get_items_expected_max() > 0 && !split(std::string(argument)).value;
}

void check_arguments(CLI::App& command, std::string_view name, Arguments arguments) {
  Check check(command, name);
  if (check.run(arguments)) check.expect_all();
}

bool parse(CLI::App& app, Arguments arguments, std::string& answer) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw UsageError(error.what());
    std::ostringstream out;
    app.exit(error, out, out);
    answer = out.str();
    return true;
  }
  return false;
}

}  // namespace lockstep::cli
