// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/lane_trial.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/trial_buffer.h"
#include "lockstep/cli/bench/values.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;
using schedule::Op;

LaneOwnership ownership_of(const Case& what, int ranks) {
  if (what.lanes.empty()) return even_ownership(ranks, ranks);
  LaneOwnership ownership{.first_lane = {0}};
  for (const int lanes : what.lanes) ownership.first_lane.push_back(ownership.first_lane.back() + lanes);
  LOCKSTEP_CHECK(ownership.world() == ranks, "the options ask for the lanes of every rank");
  return ownership;
}

// No rank has added any of its lanes yet.
comm::LanePieces pieces_of(const LaneOwnership& ownership) {
  comm::LanePieces pieces(static_cast<std::size_t>(ownership.world()));
  int lane = 0;
  for (Rank rank = 0; rank < ownership.world(); ++rank) {
    for (int i = 0; i < ownership.count_of(rank); ++i) {
      pieces[static_cast<std::size_t>(rank)].push_back({.first = lane++, .count = 1});
    }
  }
  return pieces;
}

class LaneTrial : public Trial {
 public:
  LaneTrial(const Communicator& communicator, const Case& what, const comm::Options& options)
      : communicator_(communicator),
        what_(what),
        options_(options),
        ownership_(ownership_of(what, communicator.size())),
        pieces_(pieces_of(ownership_)) {
    // A rank without lanes needs a place for the result, and adds zeros where nobody knows of lanes.
    const int buffers = std::max(1, ownership_.count_of(communicator_.rank()));
    for (int i = 0; i < buffers; ++i) {
      buffers_.emplace_back(communicator_, what.bytes, what.registered);
      partials_.push_back(buffers_.back().bytes());
      operands_.push_back({partials_.back().data(), static_cast<std::uint8_t>(i == 0 ? 0 : 1)});
    }
  }

  void fill() override {
    clear();
    const int first = ownership_.first_lane[static_cast<std::size_t>(communicator_.rank())];
    for (int i = 0; i < ownership_.count_of(communicator_.rank()); ++i) {
      fill_values(partials_[static_cast<std::size_t>(i)], what_.dtype, first + i, all());
    }
  }

  bool is_correct() const override {
    const Range where = what_.op == Op::all_reduce ? all() : my_chunk();
    return holds_sum(partials_.front(), what_.dtype, ownership_.lanes(), where,
                     in_the_tree() ? Comparison::bits : Comparison::rounding);
  }

  void clear() override {
    for (const TrialBuffer& buffer : buffers_) buffer.clear();
  }

  void run_once() override {
    if (in_the_tree()) return sum_in_the_tree();
    add_my_lanes();
    if (what_.op == Op::all_reduce) {
      communicator_.all_reduce(partials_.front(), options_);
    } else {
      communicator_.reduce_scatter(partials_.front(), options_);
    }
  }

  void meet() override { communicator_.barrier(); }

 private:
  bool in_the_tree() const { return what_.algorithm == "lanes"; }
  std::size_t count() const { return what_.bytes / size_of(what_.dtype); }
  Range all() const { return {0, count()}; }
  Range my_chunk() const {
    return chunk_range(count(), static_cast<std::size_t>(communicator_.size()),
                       static_cast<std::size_t>(communicator_.rank()));
  }

  void sum_in_the_tree() const {
    if (what_.op == Op::all_reduce) {
      communicator_.all_reduce_lanes(partials_, pieces_, options_);
    } else {
      communicator_.reduce_scatter_lanes(partials_, pieces_, options_);
    }
  }

  void add_my_lanes() const {
    if (partials_.size() < 2) return;
    const std::array<std::byte*, 1> sum = {partials_.front().data()};
    kernels::combine({.dtype = what_.dtype}, operands_, sum, count());
  }

  Communicator communicator_;
  Case what_;
  comm::Options options_;
  LaneOwnership ownership_;
  comm::LanePieces pieces_;
  std::vector<TrialBuffer> buffers_;        // of my lanes, at least one
  std::vector<Bytes> partials_;             // the same as the communicator takes them
  std::vector<kernels::Operand> operands_;  // and as the kernel does
};

}  // namespace

std::unique_ptr<Trial> make_lane_trial(const Communicator& communicator, const Case& what,
                                       const comm::Options& options) {
  return std::make_unique<LaneTrial>(communicator, what, options);
}

}  // namespace lockstep::cli
