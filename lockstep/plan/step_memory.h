// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/base/rank.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::plan {

// What a rank needs at the worst moment of a step, in bytes; the program itself and its libraries are not
// counted.
struct StepMemory {
  std::uint64_t weights = 0;    // in the dtype that blocks compute with
  std::uint64_t optimizer = 0;  // of the rank's share: values in fp32, if the weights are not, and moments
  std::uint64_t gradients = 0;  // the slots of the step program, or the rank's share of them
  // Also weights and gradients that come and go, when they are shared out.
  std::uint64_t activations = 0;
  std::uint64_t checkpoint = 0;  // a copy of the state that is written while training goes on

  std::uint64_t total() const { return weights + optimizer + gradients + activations + checkpoint; }
};

// Of a rank of `world`, when the run begins: counts its step program, which is proved on the way. For a
// checked run. `host_of` by rank: equal numbers share a host; empty: all share one. UsageError as
// data_grid().
StepMemory step_memory(const spec::RunSpec& run, int world, Rank rank, std::span<const int> host_of = {});

// Whether ranks of an elastic run mirror each other's shares of the state, in memory: not where a disk has
// what the optimizer remembers, because memory has no room for it.
bool mirrors_shares(const spec::RunSpec& run);

// What the same rank needs beside it in an elastic run with several hosts: the shares of the state that it
// mirrors, and their gradients. On one host it reads them where they are.
std::uint64_t mirror_memory(const spec::RunSpec& run, int world, Rank rank,
                            std::span<const int> host_of = {});

// How many ranks share out among them what ZeRO shares out.
int sharers_of(const spec::RunSpec& run, int world, std::span<const int> host_of = {});

}  // namespace lockstep::plan
