// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/checkpointer.h"

#include <chrono>
#include <exception>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/base/log.h"
#include "lockstep/base/seconds_since.h"

namespace lockstep::train {
namespace {

// How often it is seen whether a disk has got on.
constexpr std::chrono::milliseconds kLook{10};

// No lockstep::Error: no file is bad.
class GivenUp : public std::exception {
 public:
  const char* what() const noexcept override { return "it was given up with the ranks that wrote it"; }
};

std::uint64_t shared_id(const comm::Communicator& world) {
  std::int64_t id = 0;
  if (world.rank() == 0) {
    std::random_device entropy;
    id = static_cast<std::int64_t>(std::uint64_t{entropy()} << 31U ^ entropy());
  }
  world.all_reduce(as_writable_bytes_of(id), {.dtype = DType::int64});
  return static_cast<std::uint64_t>(id);
}

// Why it failed; nothing when it did not. A disk may fail in any way, and training goes on.
template <typename Work>
std::string reason_of(const Work& work) {
  try {
    work();
    return "";
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

template <typename Work>
void attempt_removal(const Work& work) {
  const std::string reason = reason_of(work);
  if (!reason.empty()) log::warning("old checkpoints stay: " + reason);
}

template <typename Result>
bool is_under_way(const std::future<Result>& work) {
  return work.valid() && work.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

// Better than to find out after most of it was written.
void require_room(const std::string& folder, const std::vector<checkpoint::OutgoingPiece>& pieces) {
  std::uintmax_t needed = 0;
  for (const checkpoint::OutgoingPiece& piece : pieces) needed += piece.elements.size() * sizeof(float);
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  if (unknown || space.available >= needed) return;
  throw UsageError(fmt::format("the disk of {} has {} MiB left, and this rank's part needs {} MiB", folder,
                               space.available >> 20U, needed >> 20U));
}

}  // namespace

Checkpointer::Checkpointer(const Holding& holding, const Weights& weights, Options options)
    : world_(holding.groups.world),
      weights_(weights),
      options_(std::move(options)),
      store_(options_.folder),
      snapshot_(holding, weights),
      run_id_(shared_id(world_)),
      round_(world_.size()) {}

Checkpointer::~Checkpointer() {
  is_given_up_ = true;
  while (is_busy()) wait(kLook);
  set_awaiting_disk(false);
  if (round_.is_writing() && leads()) store_.abandon(reached_.progress.step, id_);
}

void Checkpointer::prepare() {
  if (!weights_.is_on_disk()) snapshot_.prepare();
}

void Checkpointer::begin(const Reached& reached, bool training_waits) {
  LOCKSTEP_CHECK(is_idle() && !is_removing());
  began_ = Clock::now();
  id_ = fmt::format("{:x}-{}", run_id_, ++attempts_);
  reached_ = reached;
  report_ = {.step = reached.progress.step};
  round_.begin();
  if (training_waits || weights_.is_on_disk()) {
    outcome_ = reason_of([this] {
      write(snapshot_.in_place(), [this] {
        pass_block();
        get_on();
      });
    });
  } else {
    std::vector<checkpoint::OutgoingPiece> copied = take_copy();
    LOCKSTEP_FAILPOINT("train.snapshot");
    work_ = std::async(std::launch::async, [this, pieces = std::move(copied)] {
      std::string reason = reason_of([&] { write(pieces, [this] { pass_block(); }); });
      set_awaiting_disk(false);
      return reason;
    });
  }
  report_.stall_seconds = seconds_since(began_);
}

// As one action, and a long one where there is much: the others wait for it, up to their deadline.
std::vector<checkpoint::OutgoingPiece> Checkpointer::take_copy() {
  const elastic::Activity::Wait excused(options_.activity);
  return snapshot_.take();
}

void Checkpointer::get_on() const {
  if (options_.activity != nullptr) options_.activity->get_on();
}

void Checkpointer::set_awaiting_disk(bool awaits) const {
  if (options_.activity != nullptr) options_.activity->set_awaiting_disk(awaits);
}

void Checkpointer::pass_block() const {
  if (options_.activity != nullptr) options_.activity->get_on_with_disk();
  if (is_given_up_ || options_.lost.stop_requested()) throw GivenUp();
}

void Checkpointer::write(const std::vector<checkpoint::OutgoingPiece>& pieces,
                         const checkpoint::BetweenBlocks& between_blocks) {
  between_blocks();
  checkpoint::CheckpointStore store = store_;
  store.begin(reached_.progress.step, id_);
  require_room(store.folder(), pieces);
  checkpoint::write_shard(real_disk(), store.staging_folder(reached_.progress.step, id_), world_.rank(),
                          pieces, between_blocks);
}

void Checkpointer::commit() {
  checkpoint::Manifest manifest = options_.manifest;
  manifest.progress = reached_.progress;
  manifest.last_step = reached_.last;
  store_.commit(id_, std::move(manifest), world_.size(), [this] { pass_block(); });
  attempt_removal([this] { store_.remove_leftovers(); });
}

void Checkpointer::start_commit() {
  std::promise<std::string> committed;
  work_ = committed.get_future();
  removal_ = std::async(std::launch::async, [this, committed = std::move(committed)]() mutable {
    const std::string reason = reason_of([this] { commit(); });
    committed.set_value(reason);
    if (reason.empty()) {
      attempt_removal([this] { store_.collect(options_.retention, [this] { pass_block(); }); });
    }
    set_awaiting_disk(false);
  });
}

checkpoint::SaveTidings Checkpointer::tidings() {
  if (work_.valid() && !is_under_way(work_)) outcome_ = work_.get();
  if (!is_busy()) set_awaiting_disk(false);
  if (outcome_) round_.settle(outcome_->empty());
  return round_.tidings();
}

bool Checkpointer::is_removing() const {
  return is_under_way(removal_);
}

bool Checkpointer::is_busy() const {
  return is_under_way(work_) || is_removing();
}

void Checkpointer::wait(std::chrono::milliseconds time) {
  const bool works = is_under_way(work_);
  if (!works && !is_removing()) return std::this_thread::sleep_for(time);
  // A disk that hangs must be seen to: only what it does counts. Once it is done this rank waits for others
  // as at any time, also when it is asking them just then.
  set_awaiting_disk(true);
  works ? work_.wait_for(time) : removal_.wait_for(time);
}

std::optional<SaveReport> Checkpointer::hear(const checkpoint::SaveTidings& all) {
  switch (round_.hear(all)) {
    case checkpoint::SaveRound::Next::wait:
      return std::nullopt;
    case checkpoint::SaveRound::Next::commit:
      outcome_.reset();
      if (leads()) start_commit();
      return std::nullopt;
    case checkpoint::SaveRound::Next::good:
      return end(true);
    case checkpoint::SaveRound::Next::bad:
      return end(false);
  }
  return std::nullopt;
}

SaveReport Checkpointer::end(bool is_good) {
  if (!is_good && leads()) {
    const elastic::Activity::Wait excused(options_.activity);
    store_.abandon(reached_.progress.step, id_);
  }
  report_.reason = std::exchange(outcome_, std::nullopt).value_or("");
  if (!report_.reason.empty() && !leads()) log::warning(report_.reason);
  if (!is_good && report_.reason.empty()) report_.reason = "another rank could not write its part";
  report_.is_good = is_good;
  report_.seconds = seconds_since(began_);
  if (is_good) report_.path = fmt::format("{}/step-{}", store_.folder(), reached_.progress.step);
  return report_;
}

}  // namespace lockstep::train
