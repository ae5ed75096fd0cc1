// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include <CLI/App.hpp>

#include "lockstep/cli/chaos/run.h"
#include "lockstep/cli/commands.h"

namespace lockstep::cli {

void add_chaos(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("chaos", "Train a run under random faults, and tell what they have cost");
  // It reads its own flags, --help among them.
  command->prefix_command();
  command->set_help_flag("");
  command->callback([&invocation] {
    invocation.action = [&invocation] { return run_chaos(invocation.trailing, std::cout); };
  });
}

}  // namespace lockstep::cli
