// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench.h"

#include <iostream>

#include <CLI/App.hpp>

#include "lockstep/base/error.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/trainer/commands.h"

namespace lockstep::cli {
namespace {

// Help about the command is help about all benchmarks.
int bench(const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "kernels") return run_kernel_bench({arguments.begin() + 1, arguments.end()}, std::cout);
  if (first != "--help" && first != "-h") return run_bench(arguments, std::cout);
  run_bench({"collectives", "--help"}, std::cout);
  run_bench({"train", "--help"}, std::cout);
  run_bench({"memory", "--help"}, std::cout);
  try {
    return run_kernel_bench({"--help"}, std::cout);
  } catch (const UsageError& no_trainer) {
    std::cout << "\nOf the kernels: " << no_trainer.what() << "\n";
    return 0;
  }
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure collectives, training, memory or kernels, also against other libraries");
  // It reads its own flags, --help among them.
  command->prefix_command();
  command->set_help_flag("");
  command->callback(
      [&invocation] { invocation.action = [&invocation] { return bench(invocation.trailing); }; });
}

}  // namespace lockstep::cli
