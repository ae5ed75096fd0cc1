// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/memory.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/bench/values.h"
#include "lockstep/comm/algorithm_name.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;
using schedule::Op;

// Registered memory of the communicator, or memory it knows nothing of.
class TrialBuffer {
 public:
  TrialBuffer(const Communicator& communicator, std::size_t bytes, bool registered)
      : registered_(registered && bytes > 0 ? communicator.allocate(bytes) : comm::Buffer()),
        plain_(registered ? PlainMemory() : PlainMemory(bytes)) {
    std::ranges::fill(registered_.bytes(), std::byte{});
  }

  Bytes bytes() const { return plain_.bytes().empty() ? registered_.bytes() : plain_.bytes(); }

 private:
  comm::Buffer registered_;
  PlainMemory plain_;
};

comm::LanePieces one_lane_each(int ranks) {
  LOCKSTEP_CHECK(std::has_single_bit(static_cast<unsigned>(ranks)),
                 "the options allow lanes on such worlds only");
  comm::LanePieces pieces;
  for (Rank rank = 0; rank < ranks; ++rank) pieces.push_back({{.first = rank, .count = 1}});
  return pieces;
}

class CollectiveTrial : public Trial {
 public:
  CollectiveTrial(Communicator communicator, const Case& what)
      : communicator_(std::move(communicator)),
        what_(what),
        data_(communicator_, what.op == Op::barrier ? 0 : what.bytes, what.registered),
        output_(communicator_, what.op == Op::all_to_all ? what.bytes : 0, what.registered),
        count_(what.bytes / size_of(what.dtype)) {
    options_.dtype = what.dtype;
    if (what.exactness != Exactness::automatic) options_.exact = what.exactness == Exactness::exact;
    if (what.algorithm == "lanes") {
      pieces_ = one_lane_each(communicator_.size());
    } else if (what.algorithm != "auto") {
      const comm::AlgorithmName name = comm::parse_algorithm_name(what.algorithm);
      options_.algorithm = name.algorithm;
      options_.inner = name.inner;
      options_.outer = name.outer;
    }
  }

  void fill() override {
    clear();
    if (what_.op == Op::barrier) return;
    fill_values(data_.bytes(), what_.dtype, communicator_.rank(),
                what_.op == Op::all_gather ? my_chunk() : all());
  }

  bool is_correct() const override;

  void clear() override {
    std::ranges::fill(data_.bytes(), std::byte{});
    std::ranges::fill(output_.bytes(), std::byte{});
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
    const bool fixed = !options_.algorithm || schedule::is_exact(*options_.algorithm);
    return fixed ? Comparison::bits : Comparison::rounding;
  }
  bool sum_in(Range where) const {
    return holds_sum(data_.bytes(), what_.dtype, communicator_.size(), where, comparison());
  }
  bool gathered() const;
  bool exchanged() const;
  void run_lanes();

  Communicator communicator_;
  Case what_;
  TrialBuffer data_;
  TrialBuffer output_;
  std::size_t count_;
  comm::Options options_;
  std::optional<comm::LanePieces> pieces_;
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

void CollectiveTrial::run_lanes() {
  const Bytes partials[] = {data_.bytes()};
  if (what_.op == Op::all_reduce) {
    communicator_.all_reduce_lanes(partials, *pieces_, options_);
  } else {
    communicator_.reduce_scatter_lanes(partials, *pieces_, options_);
  }
}

void CollectiveTrial::run_once() {
  if (pieces_) return run_lanes();
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
    return std::make_unique<CollectiveTrial>(communicator, what);
  };
}

}  // namespace lockstep::cli
