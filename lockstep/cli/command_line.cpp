// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/command_line.h"

#include <algorithm>
#include <string_view>

#include <CLI/App.hpp>

#include "lockstep/cli/arguments.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/version.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kProgram = "lockstep";

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 a difference was found, 2 bad usage or setup, 65 bad data, 70 a bug of ours, "
    "73 another process\n"
    "writes the same folder, 74 output could not be written, 75 communication failed (may be tried again) or "
    "a "
    "run was stopped\n"
    "(`--resume auto` goes on), 128 + n ended by signal n. docs/errors.md says more.\n"
    "`lockstep COMMAND --help` explains a command.";

void describe(CLI::App& app, Invocation& invocation) {
  app.footer(kFooter);
  app.set_version_flag("--version", version_text(), "Print version and features, and exit");
  app.require_subcommand(0, 1);
  add_bench(app, invocation);
  add_chaos(app, invocation);
  add_checkpoint(app, invocation);
  add_doctor(app, invocation);
  add_failpoints(app, invocation);
  add_keygen(app, invocation);
  add_launch(app, invocation);
  add_prepare(app, invocation);
  add_schedule(app, invocation);
  add_trace(app, invocation);
  add_trainer_commands(app, invocation);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// How many arguments belong to the command itself, before a trailing command line that is not ours to read.
std::size_t own_arguments(CLI::App& command, Arguments arguments) {
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
  CLI::App* command;
  std::string name;
  std::size_t first_argument = 0;
};

Chosen choose(CLI::App& app, Arguments arguments) {
  Chosen chosen{&app, std::string(kProgram), 0};
  for (const std::string& argument : arguments) {
    const auto nested = command_names(*chosen.command);
    if (nested.empty() || is_flag(argument)) break;
    if (std::find(nested.begin(), nested.end(), argument) == nested.end()) {
      refuse_unknown("command", argument, nested, chosen.name);
    }
    chosen.command = chosen.command->get_subcommand(argument);
    chosen.name += " " + argument;
    ++chosen.first_argument;
  }
  return chosen;
}

// Checks names first, for better suggestions than the parser gives; cuts off a trailing command.
std::vector<std::string> prepared(CLI::App& app, Arguments arguments, Invocation& invocation) {
  const Chosen chosen = choose(app, arguments);
  const Arguments rest = arguments.subspan(chosen.first_argument);
  Arguments own = rest;
  if (chosen.command->get_prefix_command()) {
    own = rest.first(own_arguments(*chosen.command, rest));
    Arguments trailing = rest.subspan(own.size());
    if (!trailing.empty() && trailing.front() == "--") trailing = trailing.subspan(1);
    invocation.trailing.assign(trailing.begin(), trailing.end());
  }
  check_arguments(*chosen.command, chosen.name, own);
  return {arguments.begin(),
          arguments.begin() + static_cast<std::ptrdiff_t>(chosen.first_argument + own.size())};
}

// `lockstep help launch` and `lockstep version`, as other programs have them.
std::vector<std::string> in_words(std::vector<std::string> arguments) {
  if (arguments.empty()) return arguments;
  if (arguments.front() == "version") arguments.front() = "--version";
  if (arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  return arguments;
}

}  // namespace

class CommandLine::Impl {
 public:
  explicit Impl(const std::vector<std::string>& arguments)
      : app_("Lockstep: collectives and distributed training that give the same bits on any layout.",
             std::string(kProgram)) {
    describe(app_, invocation_);
    parse(app_, prepared(app_, in_words(arguments), invocation_), answer_);
  }

  const std::string& answer() const { return answer_; }
  const Invocation& invocation() const { return invocation_; }
  std::string help() const { return app_.help(); }

 private:
  CLI::App app_;
  Invocation invocation_;
  std::string answer_;
};

CommandLine::CommandLine(const std::vector<std::string>& arguments)
    : impl_(std::make_unique<Impl>(arguments)) {}
CommandLine::~CommandLine() = default;

const std::string& CommandLine::answer() const {
  return impl_->answer();
}
bool CommandLine::has_action() const {
  return static_cast<bool>(impl_->invocation().action);
}
int CommandLine::act() const {
  return impl_->invocation().action();
}
std::string CommandLine::help() const {
  return impl_->help();
}

}  // namespace lockstep::cli
