// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/cli/chaos/victim.h"
#include "lockstep/cli/logged_program.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

// bench/chaos/torch_job.py under torchrun, which starts all workers again when one has died.
class TorchrunJob final : public Victim {
 public:
  struct Options {
    spec::RunSpec run;
    std::string folder;  // for scripts, records and checkpoints; FOLDER.log has what it says
    int workers = 2;
    double mtbf_s = 20;  // by which it chooses how often to save
  };
  // UsageError, with what PyTorch says, when it cannot train such a model here.
  static void require_torch(const Options& options);

  // Starts it.
  explicit TorchrunJob(const Options& options);

  std::filesystem::path steps_file() const override { return folder_ / "steps.jsonl"; }
  std::filesystem::path starts_file() const { return folder_ / "starts.jsonl"; }
  std::vector<pid_t> workers() const override { return children_of(program_.pid()); }
  void resize() override;
  void restart_launcher() override;
  pollfd end() const override { return {program_.pid_fd(), POLLIN, 0}; }
  bool has_ended() override { return program_.poll().has_value(); }

  // After its end, which it should not have come to.
  void require_success() { program_.require_success("torchrun"); }

 private:
  std::filesystem::path folder_;
  LoggedProgram program_;
};

}  // namespace lockstep::cli
