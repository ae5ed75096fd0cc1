// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm a collective should use. A pure function of what all ranks know alike, so that all choose
// alike.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::comm {

// Time to move bytes over one kind of link.
struct Link {
  double latency_us = 1;
  double gigabytes_per_second = 1;
};

// What the choice rests on: measured by `lockstep bench collectives --tune`.
struct LinkModel {
  Link memory{.latency_us = 0.3, .gigabytes_per_second = 10};  // loopback and shm
  Link network{.latency_us = 15, .gigabytes_per_second = 2};   // tcp and mpi
  double add_gigabytes_per_second = 12;                        // combining two operands
};

// How the ranks of a group are placed.
struct Topology {
  std::vector<int> host_of;  // by rank: any numbers, equal on one host
  int world() const { return static_cast<int>(host_of.size()); }
};

// An algorithm the selector considered, with the time it expects, and why it was or was not taken.
struct Candidate {
  schedule::CollectiveSpec spec;
  double predicted_us = 0;
};

// All algorithms that can do the operation, fastest first. Never empty. With `exact`, only those with
// canonical order.
std::vector<Candidate> candidates(const schedule::CollectiveSpec& wanted, DType dtype,
                                  const Topology& topology, const LinkModel& model, bool exact);

// Fills what the algorithm of the spec needs beyond its name: grid, hosts, segments.
schedule::CollectiveSpec complete_spec(schedule::CollectiveSpec spec, DType dtype, const Topology& topology);

}  // namespace lockstep::comm
