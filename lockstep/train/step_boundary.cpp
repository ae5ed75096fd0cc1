// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_boundary.h"

#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/seconds_since.h"
#include "lockstep/train/agreement.h"

namespace lockstep::train {
namespace {

// How often ranks that have nothing else to do ask each other.
constexpr std::chrono::milliseconds kPatience{2};

}  // namespace

StepBoundary::StepBoundary(const comm::Communicator& world, Checkpointer* checkpointer, SaveHistory& history,
                           Options options)
    : world_(world),
      checkpointer_(checkpointer),
      history_(history),
      options_(std::move(options)),
      last_began_(history.last_began),
      last_step_(history.step),
      newest_(options_.resumed) {}

bool StepBoundary::pass(const Reached& reached) {
  tell_saved();
  const Heard heard = ask(reached);
  tell_saved();
  if (heard.save) begin(reached, false);
  return heard.stop;
}

bool StepBoundary::begin_untold(const Reached& reached, bool is_last) {
  const Heard heard = ask(reached);
  if (is_last && checkpointer_ != nullptr) {
    await_idle();
    if (!is_saved(reached)) begin(reached, true);
  } else if (heard.save) {
    begin(reached, false);
  }
  return heard.stop;
}

bool StepBoundary::look() {
  return exchange(wants_to_stop(), false).stop;
}

StepBoundary::Heard StepBoundary::ask(const Reached& reached) {
  const double since_last = seconds_since(last_began_);
  // Clocks differ: the leader's decides. A step whose checkpoint is there already needs no other one, however
  // long its validation took.
  const bool is_time =
      checkpointer_ != nullptr && world_.rank() == 0 && !checkpointer_->is_removing() &&
      last_step_ != reached.progress.step &&
      is_time_to_save(options_.checkpoint, reached.progress.step, {last_step_, since_last, history_.cost});
  Heard heard = exchange(wants_to_stop(), is_time);
  heard.save = heard.save && checkpointer_->is_idle();
  return heard;
}

bool StepBoundary::is_saved(const Reached& reached) const {
  return newest_ && newest_->progress.step == reached.progress.step;
}

std::string StepBoundary::finish(const Reached& reached) {
  if (checkpointer_ == nullptr) return "";
  drain();
  if (!is_saved(reached)) {
    begin(reached, true);
    drain();
    if (!last_.is_good) {
      refuse_together(world_, fmt::format("the last checkpoint, of step {}, could not be written: {}",
                                          reached.progress.step, last_.reason));
    }
  }
  return newest_->path;
}

void StepBoundary::begin(const Reached& reached, bool training_waits) {
  if (options_.before_save) options_.before_save();
  last_began_ = Clock::now();
  last_step_ = reached.progress.step;
  checkpointer_->begin(reached, training_waits);
  copy_seconds_ += seconds_since(last_began_);
}

void StepBoundary::drain() {
  await_idle();
  tell_saved();
}

void StepBoundary::await_idle() {
  while (checkpointer_ != nullptr) {
    const Heard heard = exchange(false, false);
    if (checkpointer_->is_idle() && !heard.removes) return;
    checkpointer_->wait(kPatience);
  }
}

StepBoundary::Heard StepBoundary::exchange(bool stop, bool save) {
  const checkpoint::SaveTidings mine =
      checkpointer_ == nullptr ? checkpoint::SaveTidings() : checkpointer_->tidings();
  const bool removes = checkpointer_ != nullptr && checkpointer_->is_removing();
  std::array<std::int64_t, 7> sums = {stop ? 1 : 0,   save ? 1 : 0, mine.written,   mine.failed,
                                      mine.committed, mine.refused, removes ? 1 : 0};
  world_.all_reduce(std::as_writable_bytes(std::span(sums)), {.dtype = DType::int64});
  if (checkpointer_ != nullptr) {
    const auto report = checkpointer_->hear(
        {.written = sums[2], .failed = sums[3], .committed = sums[4], .refused = sums[5]});
    if (report) take(*report);
  }
  stops_ = stops_ || sums[0] > 0;
  return {.stop = stops_, .save = sums[1] > 0, .removes = sums[6] > 0};
}

void StepBoundary::take(SaveReport report) {
  ++history_.ended;
  history_.failures = report.is_good ? 0 : history_.failures + 1;
  history_.step = report.step;
  history_.last_began = last_began_;
  report.in_a_row = history_.failures;
  last_ = report;
  if (report.is_good) {
    history_.cost = {report.stall_seconds, report.seconds};
    newest_ = {report.path, {.step = report.step}};
  }
  if (!report.is_good) tell(report);
  heard_.push_back(std::move(report));
}

void StepBoundary::tell(const SaveReport& report) const {
  if (options_.saved) options_.saved(report);
}

void StepBoundary::tell_saved() {
  for (const SaveReport& report : std::exchange(heard_, {})) {
    if (report.is_good) tell(report);
    if (report.in_a_row < options_.checkpoint.max_failures) continue;
    refuse_together(world_,
                    fmt::format("{} checkpoints in a row could not be written, the last because: {}; make "
                                "room or mend the disk, then go on with --resume auto",
                                report.in_a_row, report.reason));
  }
}

}  // namespace lockstep::train
