// SPDX-License-Identifier: Apache-2.0
//
// Who holds the others up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/rank.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/phases.h"

namespace lockstep::train {

struct Slowest {
  Rank rank = 0;
  // How many times as long it was busy as it would have been at the speed of the others, with its lanes: in
  // each phase their speed is that of the median.
  double score = 1;
  Phase phase = Phase::other;  // in which it lost the most
  bool operator==(const Slowest&) const = default;
};

// The rank that the others wait for: the one that was busy for the longest time among those that do the same
// work (equal numbers in `work`), and of several such the one with the highest score. Pure. None when nobody
// has anybody to be compared with.
std::optional<Slowest> slowest_rank(std::span<const PhaseTimes> times, std::span<const int> work);

// What a comparison came to; the same on all ranks.
struct SpeedReport {
  Slowest slowest;
  PhaseTimes mean = {};    // of all ranks, for one step
  bool is_named = false;   // it was the same one, by the factor, as often in a row as patience allows
  std::int64_t steps = 0;  // then: in so many steps
  std::string host = {};   // then: its
  bool is_evicted = false;
};

// This rank has to leave the run, which goes on without it. Others get a CommError at the same moment.
class Evicted : public Error {
 public:
  using Error::Error;
};

// "rank 2 on node7 takes 3.1 times as long as the others, most of all in forward, for 300 steps"
std::string to_text(const SpeedReport& report);

// Compares the ranks of a world every elastic.straggler_freq steps, with one small message.
class StragglerWatch {
 public:
  // What is referred to must outlive this. `work` as for slowest_rank(), for every rank of the world.
  StragglerWatch(const spec::Elastic& settings, const comm::Communicator& world, std::vector<int> work);

  void add(const PhaseTimes& times) { since_last_ += times; }
  // All ranks together, after every step.
  std::optional<SpeedReport> compare_if_due(std::int64_t step);

 private:
  std::vector<PhaseTimes> exchange();
  std::string host_of(Rank rank) const;

  const spec::Elastic& settings_;
  const comm::Communicator& world_;
  std::vector<int> work_;
  PhaseTimes since_last_;
  std::int64_t steps_ = 0;  // since the last comparison
  std::optional<Rank> suspect_;
  std::int64_t in_a_row_ = 0;      // comparisons in which it was slow
  std::int64_t steps_so_far_ = 0;  // of these
};

}  // namespace lockstep::train
