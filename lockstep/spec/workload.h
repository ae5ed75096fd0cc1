// SPDX-License-Identifier: Apache-2.0
//
// What follows from a run once the number of its workers is known. Pure functions; UsageError says which keys
// do not fit together and what would, and where they were set if `places` has that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/mesh/mesh.h"
#include "lockstep/spec/check.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// The sizes of the axes. One of them may be -1, the rest of the workers; parallelism.data leaves that to
// another axis which asks for it.
MeshShape mesh_shape(const Parallelism& parallelism);

// parallelism.tensor_lanes, or what it is when it is not given; -1 when that is open as well.
std::int64_t tensor_lanes(const Parallelism& parallelism);

// A power of two, not below the degree.
std::int64_t lanes_for(const Parallelism& parallelism, std::int64_t degree, const Places& places = {});

// How often a lane accumulates: global_batch_size / (lanes x micro_batch_size), which must be whole.
std::int64_t micro_batches_per_lane(const Training& training, std::int64_t lanes, const Places& places = {});

// 0: no layer computes its activations again, 1: each does, n: every n-th. None for a text that is no such
// setting; check_run() has refused it.
std::optional<std::int64_t> recompute_stride(const Parallelism& parallelism);

// What one sample adds to the loss: the tokens of a sequence, or the one class of a dense sample.
std::int64_t targets_per_sample(const RunSpec& run);

// Whether checkpoints are made while it trains, not only of its last step.
bool saves_on_the_way(const RunSpec& run);

struct Workload {
  std::int64_t data_parallel = 1;           // workers
  std::int64_t lanes = 1;                   // of all workers
  std::int64_t micro_batches_per_lane = 1;  // in each step
  std::int64_t global_batch_size = 1;       // sequences of a step
  std::int64_t tokens_per_step = 1;         // of an mlp: samples
  bool operator==(const Workload&) const = default;
};

// Workers by which the number of workers of an elastic run grows and shrinks: those of one replica of the
// model, or all `world` when the run says how many there are of what.
std::int64_t workers_of_replica(const Parallelism& parallelism, std::int64_t world);

// All of the above, for a checked run, on a mesh of `world` workers. Also compares the number of
// parallelism.lane_weights.
Workload workload_of(const RunSpec& run, std::int64_t world, const Places& places = {});

// The run with numbers in place of what keys leave to the number of workers: what the resolved configuration
// of a run says, and what gives the same run on another number of workers. parallelism.data stays. Where the
// workers come to one stage, what was said of several is as in a run that sets nothing.
RunSpec settled(RunSpec run, std::int64_t world, const Places& places = {});

// Of one stage, whatever a run file or flags before them say of more.
std::vector<std::string> flags_without_pipeline();

// The settled run as one process computes it with the same bits: nothing is divided, computed again or kept
// on a disk.
RunSpec plain_run(RunSpec run);

// The run without what each worker may have as it likes, and what only a launcher looks at.
RunSpec common_to_workers(RunSpec run);

}  // namespace lockstep::spec
