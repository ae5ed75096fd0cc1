// SPDX-License-Identifier: Apache-2.0
//
// How the keys of a run set the parts of the trainer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "lockstep/checkpoint/store/manifest.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/spec/workload.h"
#include "lockstep/train/feed.h"
#include "lockstep/train/gradient_sum.h"
#include "lockstep/train/tensor_lanes.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

Feed::Options feed_options(const spec::RunSpec& run, const spec::Workload& workload);
SumOptions sum_options(const spec::Comm& comm);
Weights::Options weight_options(const spec::RunSpec& run);
OptimizerStep optimizer_step(const spec::Optimizer& optimizer, double rate, std::int64_t step);

// What stages send each other for one micro-batch.
std::vector<std::int64_t> hidden_sizes(const spec::RunSpec& run, const nn::LaneTeam* team);

// The layers of this rank and those that it shares them with; none when they have one lane. What is referred
// to must outlive it.
std::unique_ptr<const TensorLanes> tensor_lanes(const spec::RunSpec& run, const model::Model& model,
                                                const comm::Communicator& group);

// Of its traces.
std::filesystem::path trace_folder(const spec::RunSpec& run);

// Of its checkpoints, as far as the keys tell.
checkpoint::Manifest manifest_of(const spec::RunSpec& run, int world);

}  // namespace lockstep::train
