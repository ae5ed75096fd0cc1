// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/lane_trial.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/bench/trial_buffer.h"
#include "lockstep/cli/bench/values.h"
#include "lockstep/comm/algorithm_name.h"
#include "lockstep/comm/select.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;
using schedule::Op;

// Without an algorithm where the communicator chooses, or lanes need none.
comm::Options options_of(const Case& what) {
  comm::Options options;
  options.dtype = what.dtype;
  if (what.exactness != Exactness::automatic) options.exact = what.exactness == Exactness::exact;
  if (what.algorithm == "auto" || what.algorithm == "lanes") return options;
  const comm::AlgorithmName name = comm::parse_algorithm_name(what.algorithm);
  options.algorithm = name.algorithm;
  options.inner = name.inner;
  options.outer = name.outer;
  return options;
}

class CollectiveTrial : public Trial {
 public:
  CollectiveTrial(Communicator communicator, const Case& what)
      : communicator_(std::move(communicator)),
        what_(what),
        data_(communicator_, what.op == Op::barrier ? 0 : what.bytes, what.registered),
        output_(communicator_, what.op == Op::all_to_all ? what.bytes : 0, what.registered),
        count_(what.bytes / size_of(what.dtype)),
        options_(options_of(what)) {
    // What a row is called must be what ran: on one level only one part of a hierarchy would.
    LOCKSTEP_CHECK(options_.algorithm != schedule::Algorithm::hierarchical ||
                       comm::Topology{.host_of = communicator_.hosts()}.has_two_levels(),
                   "the options allow hierarchies on such hosts only");
  }

  void fill() override {
    clear();
    if (what_.op == Op::barrier) return;
    fill_values(data_.bytes(), what_.dtype, communicator_.rank(),
                what_.op == Op::all_gather ? my_chunk() : all());
  }

  bool is_correct() const override;

  void clear() override {
    data_.clear();
    output_.clear();
  }

  void run_once() override;
  void meet() override { communicator_.barrier(); }

 private:
  Range all() const { return {0, count_}; }
  Range chunk_of(Rank rank) const {
    return chunk_range(count_, static_cast<std::size_t>(communicator_.size()),
                       static_cast<std::size_t>(rank));
  }
  Range my_chunk() const { return chunk_of(communicator_.rank()); }

  // By bits whenever the order of addition was asked for or is known to be fixed.
  Comparison comparison() const {
    if (what_.exactness == Exactness::inexact) return Comparison::rounding;
    const bool fixed =
        !options_.algorithm ||
        comm::is_exact({*options_.algorithm, options_.inner, options_.outer}, {communicator_.hosts()});
    return fixed ? Comparison::bits : Comparison::rounding;
  }
  bool sum_in(Range where) const {
    return holds_sum(data_.bytes(), what_.dtype, communicator_.size(), where, comparison());
  }
  bool gathered() const;
  bool exchanged() const;

  Communicator communicator_;
  Case what_;
  TrialBuffer data_;
  TrialBuffer output_;
  std::size_t count_;
  comm::Options options_;
};

bool CollectiveTrial::is_correct() const {
  switch (what_.op) {
    case Op::all_reduce:
      return sum_in(all());
    case Op::reduce_scatter:
      return sum_in(my_chunk());
    case Op::all_gather:
      return gathered();
    case Op::broadcast:
      return holds_values(data_.bytes(), what_.dtype, options_.root, all(), 0);
    case Op::reduce:
      return communicator_.rank() != options_.root || sum_in(all());
    case Op::all_to_all:
      return exchanged();
    case Op::barrier:
      return true;  // the coordinator compares when ranks entered and left
  }
  return false;
}

bool CollectiveTrial::gathered() const {
  for (Rank rank = 0; rank < communicator_.size(); ++rank) {
    const Range chunk = chunk_of(rank);
    if (!holds_values(data_.bytes(), what_.dtype, rank, chunk, chunk.begin)) return false;
  }
  return true;
}

bool CollectiveTrial::exchanged() const {
  for (Rank rank = 0; rank < communicator_.size(); ++rank) {
    if (!holds_values(output_.bytes(), what_.dtype, rank, chunk_of(rank), my_chunk().begin)) return false;
  }
  return true;
}

void CollectiveTrial::run_once() {
  switch (what_.op) {
    case Op::all_reduce:
      return communicator_.all_reduce(data_.bytes(), options_);
    case Op::reduce_scatter:
      return communicator_.reduce_scatter(data_.bytes(), options_);
    case Op::all_gather:
      return communicator_.all_gather(data_.bytes(), options_);
    case Op::broadcast:
      return communicator_.broadcast(data_.bytes(), options_);
    case Op::reduce:
      return communicator_.reduce(data_.bytes(), options_);
    case Op::all_to_all:
      return communicator_.all_to_all(data_.bytes(), output_.bytes(), options_);
    case Op::barrier:
      return communicator_.barrier(options_);
  }
}

}  // namespace

TrialFactory lockstep_trials(Communicator communicator) {
  return [communicator = std::move(communicator)](const Case& what) -> std::unique_ptr<Trial> {
    if (what.algorithm == "lanes" || !what.lanes.empty())
      return make_lane_trial(communicator, what, options_of(what));
    return std::make_unique<CollectiveTrial>(communicator, what);
  };
}

}  // namespace lockstep::cli
