// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/step/step.h"

#include <algorithm>

#include "lockstep/mesh/lanes.h"

namespace lockstep::schedule {
namespace {

struct Merge {
  int into;
  int from;
};

// Which slots hold which subtrees, as lanes are completed one after the other.
class Slots {
 public:
  int take() {
    const auto free = std::find(used_.begin(), used_.end(), false);
    const auto slot = static_cast<int>(free - used_.begin());
    if (free == used_.end()) used_.push_back(false);
    used_[static_cast<std::size_t>(slot)] = true;
    return slot;
  }

  // The additions that a completed lane makes possible, lowest level first; they free the upper slots.
  std::vector<Merge> complete(int lane, int slot) {
    std::vector<Merge> merges;
    pieces_.push_back({{.first = lane, .count = 1}, slot});
    while (pieces_.size() >= 2) {
      Piece& lower = pieces_[pieces_.size() - 2];
      const Piece& upper = pieces_.back();
      const bool neighbours =
          lower.lanes.count == upper.lanes.count && lower.lanes.first % (2 * lower.lanes.count) == 0;
      if (!neighbours) break;
      merges.push_back({.into = lower.slot, .from = upper.slot});
      used_[static_cast<std::size_t>(upper.slot)] = false;
      lower.lanes.count *= 2;
      pieces_.pop_back();
    }
    return merges;
  }

  int count() const { return std::max(1, static_cast<int>(used_.size())); }
  std::vector<int> of_pieces() const {
    std::vector<int> slots;
    for (const Piece& piece : pieces_) slots.push_back(piece.slot);
    return slots;
  }

 private:
  struct Piece {
    Subtree lanes;
    int slot;
  };
  std::vector<bool> used_;
  std::vector<Piece> pieces_;
};

class StepMaker {
 public:
  explicit StepMaker(const StepSpec& spec) : spec_(spec) {}

  StepProgram make() {
    for (int lane = spec_.first_lane; lane < spec_.end_lane; ++lane) compute_lane(lane);
    if (spec_.first_lane == spec_.end_lane) {
      for (int block = spec_.blocks - 1; block >= 0; --block) reduce_buckets_of(block);
    }
    add({.act = Act::share_losses});
    for (int bucket : reduced_) add({.act = Act::finish, .bucket = bucket});
    add({.act = Act::clip});
    for (int bucket : reduced_) {
      add({.act = Act::update, .bucket = bucket});
      if (spec_.shards_update) add({.act = Act::gather, .bucket = bucket});
    }
    if (spec_.shards_update) {
      for (int bucket : reduced_) add({.act = Act::arrive, .bucket = bucket});
    }
    program_.slots = slots_.count();
    program_.piece_slots = slots_.of_pieces();
    return std::move(program_);
  }

 private:
  void add(const Action& action) { program_.actions.push_back(action); }

  void compute_lane(int lane) {
    const int slot = slots_.take();
    add({.act = Act::clear, .lane = lane, .slot = slot});
    const std::vector<Merge> merges = slots_.complete(lane, slot);
    for (int micro = 0; micro < spec_.micro_batches; ++micro) {
      for (int block = 0; block < spec_.blocks; ++block) {
        add({.act = Act::forward,
             .lane = lane,
             .micro_batch = micro,
             .block = block,
             .slot = slot,
             .keeps = !spec_.recomputes(block)});
      }
      add({.act = Act::loss, .lane = lane, .micro_batch = micro, .slot = slot});
      for (int block = spec_.blocks - 1; block >= 0; --block) {
        if (spec_.recomputes(block)) {
          add({.act = Act::recompute, .lane = lane, .micro_batch = micro, .block = block, .slot = slot});
        }
        add({.act = Act::backward, .lane = lane, .micro_batch = micro, .block = block, .slot = slot});
        if (micro + 1 < spec_.micro_batches) continue;
        merge_buckets_of(block, merges);
        if (lane + 1 == spec_.end_lane) reduce_buckets_of(block);
      }
    }
  }

  template <typename Body>
  void for_each_bucket_of(int block, Body body) {
    for (std::size_t bucket = 0; bucket < spec_.bucket_blocks.size(); ++bucket) {
      if (spec_.bucket_blocks[bucket] == block) body(static_cast<int>(bucket));
    }
  }

  void merge_buckets_of(int block, const std::vector<Merge>& merges) {
    for_each_bucket_of(block, [&](int bucket) {
      for (const Merge& merge : merges) {
        add({.act = Act::merge, .bucket = bucket, .slot = merge.into, .from_slot = merge.from});
      }
    });
  }

  // The order in which buckets are reduced is the same on all ranks, whatever they own.
  void reduce_buckets_of(int block) {
    for_each_bucket_of(block, [&](int bucket) {
      add({.act = Act::reduce, .bucket = bucket});
      reduced_.push_back(bucket);
    });
  }

  const StepSpec& spec_;
  StepProgram program_;
  Slots slots_;
  std::vector<int> reduced_;
};

}  // namespace

std::string_view name_of(Act act) {
  switch (act) {
    case Act::clear:
      return "clear";
    case Act::forward:
      return "forward";
    case Act::loss:
      return "loss";
    case Act::recompute:
      return "recompute";
    case Act::backward:
      return "backward";
    case Act::merge:
      return "merge";
    case Act::reduce:
      return "reduce";
    case Act::share_losses:
      return "share_losses";
    case Act::finish:
      return "finish";
    case Act::clip:
      return "clip";
    case Act::update:
      return "update";
    case Act::gather:
      return "gather";
    case Act::arrive:
      return "arrive";
  }
  return "?";
}

StepProgram make_step(const StepSpec& spec) {
  return StepMaker(spec).make();
}

}  // namespace lockstep::schedule
