// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/world_run.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "lockstep/base/deadline.h"
#include "lockstep/base/file_lock.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/trainer/run_claim.h"
#include "lockstep/cli/trainer/stop_signals.h"
#include "lockstep/train/agreement.h"

namespace lockstep::cli {
namespace {

// A rank 0 that was lost, but whose process has not ended, has the folder for a moment more.
constexpr std::chrono::seconds kMoment{5};

void open(std::optional<RunFolder>& folder, const spec::RunSpec& run, int workers, bool goes_on) {
  const Deadline deadline = Deadline::after(goes_on ? kMoment : std::chrono::seconds(0));
  for (;;) {
    try {
      folder.emplace(run, workers, goes_on);
      return;
    } catch (const InUseError&) {
      if (deadline.passed()) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

}  // namespace

WorldRun::WorldRun(const spec::RunSpec& run, const comm::Communicator& world, const Options& options)
    : run_(run), world_(world), options_(options) {
  train::together(world_, [&] {
    if (world_.rank() == 0) open(folder_, run_, world_.size(), options_.goes_on);
  });
}

train::RunHooks WorldRun::hooks() {
  train::RunHooks hooks = {
      .wants_to_stop = [this] { return StopSignals::seen() != 0 || lost_output().has_value(); }};
  if (run_.checkpoint.enabled) hooks.checkpoints = checkpoint_folder(run_);
  if (folder_) {
    hooks.tokenizer_digest = folder_->tokenizer_digest();
    hooks.ready = [this] {
      folder_->begin({.gemm_peak_gflops = options_.gemm_peak,
                      .on_this_host = world_.ranks_on_this_host(),
                      .host_of = world_.hosts(),
                      .mirror = options_.is_elastic});
    };
    hooks.is_untold = [this](const train::Resumed& resumed, bool has_validation) {
      return folder_->lacks(resumed, has_validation);
    };
    hooks.resumed = [this](const train::Resumed& resumed) { folder_->resumed(resumed); };
    hooks.healed = [this](const train::Reached& reached) { folder_->healed(reached); };
    hooks.begun = [this](std::int64_t step) { folder_->begun(step); };
    hooks.after_step = [this](const train::StepReport& report) { folder_->after_step(report); };
    hooks.finished = [this](const train::RunSummary& summary) {
      if (!summary.checkpoint.empty()) folder_->save(summary.checkpoint);
      folder_->finish(summary);
    };
    hooks.saved = [this](const train::SaveReport& report) { folder_->saved(report); };
  }
  hooks.trained = [this](const model::FlatLayout& whole, const at::Tensor& values) {
    if (folder_) folder_->save(whole, values);
  };
  return hooks;
}

std::optional<std::string> WorldRun::lost_output() const {
  return folder_ ? folder_->lost_output() : std::nullopt;
}

int exit_code_of(const spec::RunSpec& run, const train::RunSummary& summary) {
  if (!summary.stopped) return kDone;
  // Without a sentence: finish() of the folder has said it, and other ranks need not. The signal may have
  // come to another one.
  if (run.checkpoint.enabled) return kInterrupted;
  return kSignalBase + (StopSignals::seen() != 0 ? StopSignals::seen() : SIGTERM);
}

}  // namespace lockstep::cli
