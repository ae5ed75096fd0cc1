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
  std::function<int()> action;        // returns the exit code; errors as exceptions
  std::vector<std::string> trailing;  // the command that follows the flags, for subcommands that take one
};

// `invocation` must outlive the parser.
void add_doctor(CLI::App& app, Invocation& invocation);
void add_keygen(CLI::App& app, Invocation& invocation);
void add_launch(CLI::App& app, Invocation& invocation);

}  // namespace lockstep::cli
