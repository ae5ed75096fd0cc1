// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/torchrun_job.h"

#include <limits>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/cli/bench/torch_command.h"
#include "lockstep/cli/bench/torch_script.h"
#include "lockstep/cli/chaos/free_port.h"
#include "lockstep/cli/chaos/torch_scripts.h"
#include "lockstep/cli/errors.h"

namespace lockstep::cli {
namespace {

std::string script(const TorchrunJob::Options& options, const char* name) {
  return (std::filesystem::path(options.folder) / name).string();
}

void write_scripts(const TorchrunJob::Options& options) {
  std::filesystem::create_directories(options.folder);
  write_atomically(script(options, "torchrun.py"), kTorchrunScript);
  write_atomically(script(options, "torch_job.py"), kTorchJobScript);
  write_atomically(script(options, "torch_gpt.py"), kTorchScript);
}

std::string log_of(const TorchrunJob::Options& options) {
  return options.folder + ".log";
}

void add_job_flags(const TorchrunJob::Options& options, std::vector<std::string>& command) {
  spec::RunSpec run = options.run;
  run.training.steps = std::numeric_limits<int>::max();  // it is ended when its time is over
  const std::vector<std::string> flags = torch_flags(run, torch_threads(run, options.workers));
  command.insert(command.end(), {"--folder", options.folder, "--mtbf", std::to_string(options.mtbf_s)});
  command.insert(command.end(), flags.begin(), flags.end());
}

std::vector<std::string> command_of(const TorchrunJob::Options& options) {
  write_scripts(options);
  std::vector<std::string> command = {kPython, script(options, "torchrun.py"), "--nnodes", "1"};
  const auto add = [&](const char* flag, const std::string& value) {
    command.insert(command.end(), {flag, value});
  };
  add("--nproc_per_node", std::to_string(options.workers));
  add("--max_restarts", std::to_string(std::numeric_limits<int>::max()));
  add("--monitor_interval", "0.1");  // how often it looks after its workers; 5 s would be the default
  add("--master_addr", "127.0.0.1");
  add("--master_port", std::to_string(free_port()));
  command.push_back(script(options, "torch_job.py"));
  add_job_flags(options, command);
  return command;
}

}  // namespace

void TorchrunJob::require_torch(const Options& options) {
  write_scripts(options);
  std::vector<std::string> command = {kPython, script(options, "torch_job.py"), "--check"};
  add_job_flags(options, command);
  try {
    run_to_end(command, log_of(options), "PyTorch");
  } catch (const WorkerFailed& failure) {
    throw UsageError(fmt::format("--against torchrun needs {} with torch: {}", kPython, failure.what()));
  }
}

TorchrunJob::TorchrunJob(const Options& options)
    : folder_(options.folder),
      program_(command_of(options), log_of(options),
               torch_environment(torch_threads(options.run, options.workers))) {}

void TorchrunJob::resize() {
  throw InternalError("torchrun is not given resizes");
}

void TorchrunJob::restart_launcher() {
  throw InternalError("torchrun is not restarted");
}

}  // namespace lockstep::cli
