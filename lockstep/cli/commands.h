// SPDX-License-Identifier: Apache-2.0
//
// One function per subcommand: it describes its flags to the parser and, when the user has chosen it, leaves
// what to do in Invocation::action. Nothing is done while parsing.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::cli {

struct Invocation {
  std::function<int()> action;  // returns the exit code; errors as exceptions
  // What follows the flags, for subcommands with CLI::App::prefix_command(): a command line that the parser
  // does not read. Everything, when the subcommand has no flags.
  std::vector<std::string> trailing;
};

// `invocation` must outlive the parser.
void add_bench(CLI::App& app, Invocation& invocation);
void add_chaos(CLI::App& app, Invocation& invocation);
void add_checkpoint(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_failpoints(CLI::App& app, Invocation& invocation);
void add_keygen(CLI::App& app, Invocation& invocation);
void add_launch(CLI::App& app, Invocation& invocation);
void add_prepare(CLI::App& app, Invocation& invocation);
void add_schedule(CLI::App& app, Invocation& invocation);
void add_trace(CLI::App& app, Invocation& invocation);

}  // namespace lockstep::cli
