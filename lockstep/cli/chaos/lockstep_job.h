// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/cli/chaos/victim.h"
#include "lockstep/cli/logged_program.h"

namespace lockstep::cli {

// `lockstep train`, and where the number of workers changes also `lockstep agent` with one of them.
class LockstepJob final : public Victim {
 public:
  struct Options {
    std::string file;    // of the run
    std::string folder;  // for what the run leaves behind; FOLDER.log has what it says
    int workers = 2;
    bool has_resizes = false;
  };
  // Starts it.
  explicit LockstepJob(Options options);

  std::filesystem::path steps_file() const override;
  std::filesystem::path generations_file() const;
  std::vector<pid_t> workers() const override;
  void resize() override;
  void restart_launcher() override;
  pollfd end() const override { return {launcher_->pid_fd(), POLLIN, 0}; }
  bool has_ended() override { return launcher_->poll().has_value(); }

  // After its end; as LoggedProgram has it.
  void require_success(std::string_view what) { launcher_->require_success(what); }

 private:
  void launch(bool resumes);
  void send_agent();
  std::string log() const { return options_.folder + ".log"; }

  Options options_;
  std::string address_;                  // where the launcher listens; empty: nowhere
  rendezvous::Environment environment_;  // with the secret
  std::optional<LoggedProgram> launcher_;
  std::optional<LoggedProgram> agent_;
};

}  // namespace lockstep::cli
