// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/lockstep_job.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/cpu.h"
#include "lockstep/cli/chaos/free_port.h"
#include "lockstep/transport/connect/secret.h"

namespace lockstep::cli {
namespace {

std::string program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

// Workers prove to each other that they know it.
rendezvous::Environment with_secret() {
  if (!transport::Secret::from_environment().empty()) return {};
  return {{"LOCKSTEP_SECRET", transport::Secret::generate().value_for_environment()}};
}

}  // namespace

LockstepJob::LockstepJob(Options options) : options_(std::move(options)) {
  if (options_.has_resizes) {
    address_ = "127.0.0.1:" + std::to_string(free_port());
    environment_ = with_secret();
    // Launcher and agent take themselves to be alone on the host.
    const int threads = std::max(1, usable_cores() / options_.workers);
    environment_.emplace("OMP_NUM_THREADS", std::to_string(threads));
  }
  launch(false);
  if (options_.has_resizes) send_agent();
}

void LockstepJob::launch(bool resumes) {
  const int here = options_.workers - (options_.has_resizes ? 1 : 0);
  std::vector<std::string> command = {
      program(),           "train",        options_.file, "--workers", std::to_string(here),
      "--job.dump_folder", options_.folder};
  if (!address_.empty()) command.insert(command.end(), {"--listen", address_});
  if (resumes) command.insert(command.end(), {"--resume", "auto"});
  launcher_.emplace(command, log(), environment_);
}

void LockstepJob::send_agent() {
  agent_.emplace(std::vector<std::string>{program(), "agent", options_.file, "--workers", "1", "--join",
                                          address_, "--job.dump_folder", options_.folder},
                 log(), environment_);
}

std::filesystem::path LockstepJob::steps_file() const {
  return std::filesystem::path(options_.folder) / "metrics.jsonl";
}

std::filesystem::path LockstepJob::generations_file() const {
  return std::filesystem::path(options_.folder) / "generations.jsonl";
}

std::vector<pid_t> LockstepJob::workers() const {
  std::vector<pid_t> workers = children_of(launcher_->pid());
  if (agent_) {
    const std::vector<pid_t> more = children_of(agent_->pid());
    workers.insert(workers.end(), more.begin(), more.end());
  }
  return workers;
}

void LockstepJob::resize() {
  if (!agent_) return send_agent();
  agent_->kill();
  agent_.reset();
}

void LockstepJob::restart_launcher() {
  launcher_->kill();
  launch(true);
}

}  // namespace lockstep::cli
