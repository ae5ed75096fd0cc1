// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/trainer/commands.h"

namespace lockstep::cli {
namespace {

// Threads of libgomp that wait for one another spin for milliseconds before they sleep, the time that another
// process would have given way in: on a busy machine, many times slower. It reads this when it is loaded.
void wait_for_threads_briefly() {
  constexpr int kKeep = 0;
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", kKeep);
}

// Becomes lockstep-trainer; returns only by an error.
int hand_over(const std::string& command, const std::vector<std::string>& arguments) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "lockstep-trainer";
  std::vector<std::string> words = {"lockstep", command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  wait_for_threads_briefly();
  ::execv(program.c_str(), argv.data());
  if (errno == ENOENT) {
    throw UsageError(
        fmt::format("lockstep {}: {} is missing, because this lockstep was built without the trainer "
                    "(LOCKSTEP_TRAIN=OFF)",
                    command, program.string()));
  }
  throw UsageError(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

int hand_over(const std::string& command, const std::string& inner, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), inner);
  return hand_over(command, arguments);
}

void add_forwarded(CLI::App& app, Invocation& invocation, const std::string& name, const char* summary) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->prefix_command();
  command->set_help_flag("");  // --help is the other program's to answer
  command->callback([name, &invocation] {
    invocation.action = [name, &invocation] { return hand_over(name, invocation.trailing); };
  });
}

}  // namespace

void add_trainer_commands(CLI::App& app, Invocation& invocation) {
  add_forwarded(app, invocation, "train", kTrainSummary);
  add_forwarded(app, invocation, "agent", kAgentSummary);
  add_forwarded(app, invocation, "verify", kVerifySummary);
  add_forwarded(app, invocation, "eval", kEvalSummary);
  add_forwarded(app, invocation, "generate", kGenerateSummary);
}

int run_kernel_bench(const std::vector<std::string>& arguments, std::ostream& /*out*/) {
  return hand_over("bench", "kernels", arguments);
}

int run_checkpoint_export(const std::vector<std::string>& arguments) {
  return hand_over("checkpoint", "export", arguments);
}

int run_checkpoint_import(const std::vector<std::string>& arguments) {
  return hand_over("checkpoint", "import", arguments);
}

}  // namespace lockstep::cli
