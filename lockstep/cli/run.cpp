// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/run.h"

#include <algorithm>
#include <iostream>
#include <span>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/suggest.h"
#include "lockstep/cli/version.h"

namespace lockstep::cli {
namespace {

using Arguments = std::span<const std::string>;

constexpr const char* kFooter =
    "Exit codes: 0 done, 2 bad usage or setup, 65 bad data, 70 a bug of ours, 75 communication failed\n"
    "(may be tried again). `lockstep COMMAND --help` explains a command.";

void describe(CLI::App& app, Invocation& invocation) {
  app.footer(kFooter);
  app.set_version_flag("--version", version_text(), "Print version and features, and exit");
  app.require_subcommand(0, 1);
  add_bench(app, invocation);
  add_doctor(app, invocation);
  add_keygen(app, invocation);
  add_launch(app, invocation);
  add_prepare(app, invocation);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

[[noreturn]] void unknown(std::string_view what, const std::string& typed, const std::string& meant,
                          const std::string& help) {
  const std::string hint =
      meant.empty() ? fmt::format("`{} --help` lists them", help) : fmt::format("did you mean '{}'?", meant);
  throw UsageError(fmt::format("unknown {} '{}': {}", what, typed, hint));
}

bool is_flag(std::string_view argument) {
  return argument.size() > 1 && argument.front() == '-';
}

// The option an argument names; null when there is none. "--name=value" and "-nvalue" name one too.
const CLI::Option* option_of(const CLI::App& app, const std::string& argument) {
  const bool is_long = argument.starts_with("--");
  return app.get_option_no_throw(is_long ? argument.substr(0, argument.find('=')) : argument.substr(0, 2));
}

bool takes_next(const CLI::Option& option, const std::string& argument) {
  const bool has_value =
      argument.starts_with("--") ? argument.find('=') != std::string::npos : argument.size() > 2;
  return option.get_items_expected_max() > 0 && !has_value;
}

// How many arguments belong to the command itself, before a trailing command line that is not ours to read.
std::size_t own_arguments(const CLI::App& command, Arguments arguments) {
  std::size_t at = 0;
  if (command.get_options().empty()) return 0;
  while (at < arguments.size() && is_flag(arguments[at]) && arguments[at] != "--") {
    const CLI::Option* option = option_of(command, arguments[at]);
    at += option && takes_next(*option, arguments[at]) ? 2 : 1;
  }
  return std::min(at, arguments.size());
}

// The most deeply nested command that the arguments name, with its full name, and where its own arguments
// begin.
struct Chosen {
  const CLI::App* command;
  std::string name;
  std::size_t first_argument = 0;
};

Chosen choose(const CLI::App& app, Arguments arguments) {
  Chosen chosen{&app, "lockstep", 0};
  for (const std::string& argument : arguments) {
    const auto nested = command_names(*chosen.command);
    if (nested.empty() || is_flag(argument)) break;
    if (std::find(nested.begin(), nested.end(), argument) == nested.end()) {
      unknown("command", argument, closest(argument, nested), chosen.name);
    }
    chosen.command = chosen.command->get_subcommand(argument);
    chosen.name += " " + argument;
    ++chosen.first_argument;
  }
  return chosen;
}

void check_flags(const Chosen& chosen, Arguments arguments) {
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    if (!is_flag(arguments[at])) continue;
    const CLI::Option* option = option_of(*chosen.command, arguments[at]);
    if (!option) {
      const std::string typed = arguments[at].substr(0, arguments[at].find('='));
      unknown(fmt::format("flag of {}", chosen.name), typed, closest(typed, flag_names(*chosen.command)),
              chosen.name);
    }
    if (takes_next(*option, arguments[at])) ++at;
  }
}

// Checks names first, for better suggestions than the parser gives; cuts off a trailing command.
std::vector<std::string> prepared(const CLI::App& app, Arguments arguments, Invocation& invocation) {
  const Chosen chosen = choose(app, arguments);
  const Arguments rest = arguments.subspan(chosen.first_argument);
  Arguments own = rest;
  if (chosen.command->get_prefix_command()) {
    own = rest.first(own_arguments(*chosen.command, rest));
    Arguments trailing = rest.subspan(own.size());
    if (!trailing.empty() && trailing.front() == "--") trailing = trailing.subspan(1);
    invocation.trailing.assign(trailing.begin(), trailing.end());
  }
  check_flags(chosen, own);
  return {arguments.begin(),
          arguments.begin() + static_cast<std::ptrdiff_t>(chosen.first_argument + own.size())};
}

// True when the parser has answered by itself: help or version.
bool parse(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw UsageError(error.what());
    app.exit(error);
    return true;
  }
  return false;
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  try {
    CLI::App app("Lockstep: collectives and distributed training that give the same bits on any layout.",
                 "lockstep");
    Invocation invocation;
    describe(app, invocation);
    if (parse(app, prepared(app, arguments, invocation))) return kDone;
    if (!invocation.action) {
      std::cerr << app.help();
      return kBadUsage;
    }
    return invocation.action();
  } catch (...) {
    const Verdict verdict = verdict_on(std::current_exception());
    std::cerr << "lockstep: " << verdict.sentence << "\n";
    return verdict.code;
  }
}

}  // namespace lockstep::cli
