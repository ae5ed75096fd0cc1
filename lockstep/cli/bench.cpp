// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench.h"

#include <iostream>

#include <CLI/App.hpp>

#include "lockstep/cli/commands.h"

namespace lockstep::cli {

void add_bench(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("bench", "Measure collectives, also against other libraries");
  // It reads its own flags, --help among them.
  command->prefix_command();
  command->set_help_flag("");
  command->callback([&invocation] {
    invocation.action = [&invocation] { return run_bench(invocation.trailing, std::cout); };
  });
}

}  // namespace lockstep::cli
