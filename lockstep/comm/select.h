// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm a collective should use. Pure functions of what all ranks know alike, so that all choose
// alike.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/comm/algorithm_name.h"
#include "lockstep/comm/link_model.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::comm {

// How the ranks of a group are placed.
struct Topology {
  std::vector<int> host_of;  // by rank: equal numbers share a host

  int world() const { return static_cast<int>(host_of.size()); }
  // The ranks of each host if they follow one another, as CollectiveSpec::ranks_per_host asks; otherwise one
  // host per rank.
  std::vector<int> ranks_per_host() const;
  // Whether ranks share a host and others stand between them: no hierarchy can be made of these hosts.
  bool is_scattered() const;
  // Several hosts, and several ranks on one of them: a hierarchy is more than one of its parts.
  bool has_two_levels() const;
};

// An algorithm that was considered, and what its time is expected to be made of.
struct Candidate {
  schedule::CollectiveSpec spec;
  double latency_us = 0;   // messages that must follow one another
  double messages_us = 0;  // handling every message of the busiest rank
  double memory_us = 0;    // bytes between ranks of one host
  double network_us = 0;   // bytes between hosts
  double add_us = 0;       // arithmetic

  double total_us() const { return latency_us + messages_us + memory_us + network_us + add_us; }
};

// All algorithms that can do the operation, fastest first. Never empty. With `exact`, a reduction is only
// given algorithms with the canonical order of addition. Hierarchies only where there are two levels, and of
// their pairs of parts a few. The algorithm and what belongs to it in `wanted` is ignored.
std::vector<Candidate> candidates(const schedule::CollectiveSpec& wanted, DType dtype,
                                  const Topology& topology, const LinkModel& model, bool exact);

// Whether a reduction by this algorithm has the canonical order of addition among ranks so placed
// (schedule::is_exact).
bool is_exact(const AlgorithmName& name, const Topology& topology);

// Fills what the algorithm of the spec needs beyond its name: grid (unless it has one), hosts, segments.
schedule::CollectiveSpec complete_spec(schedule::CollectiveSpec spec, DType dtype, const Topology& topology,
                                       const LinkModel& model);

}  // namespace lockstep::comm
