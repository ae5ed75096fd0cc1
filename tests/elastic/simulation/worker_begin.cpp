// SPDX-License-Identifier: Apache-2.0
//
// How a generation begins: with what its workers have kept, or else with a checkpoint.
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/elastic/simulation/exchange.h"
#include "tests/elastic/simulation/worker.h"

namespace lockstep::elastic::simulation {

void Worker::take_offers() {
  std::map<int, DataMessage> offers = inbox().offers;
  if (world_.scenario.mistake == Mistake::heals_from_older_steps) {
    for (auto& [rank, offer] : offers) offer.step = offer.pieces.empty() ? kNoStep : place_.decided;
  }
  if (std::optional<Healed> healed = heal(offers, place_.rank)) {
    return get_ready(healed->step, std::move(healed->cells));
  }
  if (place_.only_saves) return leave();  // nobody has all of it
  enter(Phase::resuming);
  if (place_.rank != 0) return count_tried();
  listed_ = checkpoint::CheckpointStore(world_.store_folder()).committed();
  promised_ = world_.checker.promised();
  first_round_ = round_;
  if (world_.scenario.mistake == Mistake::resumes_from_old_checkpoint && listed_.size() > 1) {
    listed_.erase(listed_.begin());
  }
  try_next_checkpoint();
}

// On rank 0.
void Worker::try_next_checkpoint() {
  auto next = static_cast<std::size_t>(round_ - first_round_);
  if (next == listed_.size() && next > 0) {
    // A writer that was given up may have removed them for a newer one.
    const std::vector<checkpoint::Listed> again =
        checkpoint::CheckpointStore(world_.store_folder()).committed();
    if (again == listed_ || again.empty()) throw Violation("none of the checkpoints is good");
    listed_ = again;
    promised_ = world_.checker.promised();
    first_round_ = round_;
    next = 0;
  }
  send_all({.kind = DataMessage::Kind::candidate,
            .step = listed_.empty() ? kNoStep : listed_[next].step,
            .round = round_});
}

// The rounds end when all ranks can read the same.
void Worker::count_tried() {
  const auto candidate = inbox().candidates.extract(round_);
  if (candidate) try_candidate(candidate.mapped());
  const Inbox::ByRank& tried = inbox().tried[round_];
  if (!has_all(tried)) return;
  const bool is_good = std::ranges::all_of(tried, [](const auto& entry) { return entry.second.value == 1; });
  if (is_good) {
    if (place_.rank == 0) world_.checker.see_resume(next_step_, promised_);
    return get_ready(next_step_, std::move(next_cells_));
  }
  enter(Phase::resuming);
  ++round_;
  if (place_.rank == 0) return try_next_checkpoint();
  count_tried();
}

void Worker::try_candidate(const DataMessage& candidate) {
  after(world_.shared_disk.duration(world_.random.milliseconds(1, 50)),
        [this, candidate, entered = entered_] {
          if (entered != entered_ || is_hung_) return;
          const std::vector<Range> pieces = cells_to_hold(place_.rank, ranks());
          next_step_ = std::max<std::int64_t>(candidate.step, 0);
          bool is_good = true;
          if (candidate.step == kNoStep) {
            next_cells_ = part_of(first_cells(), pieces);
          } else {
            const auto read = world_.read_checkpoint(candidate.step, pieces);
            is_good = read.has_value();
            if (read) next_cells_ = *read;
          }
          send_all({.kind = DataMessage::Kind::tried, .round = candidate.round, .value = is_good ? 1U : 0U});
        });
}

void Worker::get_ready(std::int64_t step, Cells cells) {
  next_step_ = step;
  next_cells_ = std::move(cells);
  world_.checker.see_cells(next_step_, next_cells_);
  enter(Phase::changing);
  send_all({.kind = DataMessage::Kind::ready});
}

void Worker::change() {
  held_.step = next_step_;
  pieces_ = cells_to_hold(place_.rank, ranks());
  cells_ = std::move(next_cells_);
  world_.checker.see_begin(place_, held_.step);
  world_.trace("member {:x} begins generation {} at step {}", id(), place_.generation, held_.step);
  tell(member_.begun(held_.step));
  if (place_.only_saves) return drain(true);
  compute();
}

}  // namespace lockstep::elastic::simulation
