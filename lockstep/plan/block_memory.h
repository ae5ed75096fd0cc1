// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/schedule/step/step.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::plan {

// What one micro-batch of the run needs at each block of its model on a worker, on the CPU path
// (docs/algorithms.md, "Memory of a step"). For a model without zeros (fill_model).
std::vector<schedule::BlockMemory> block_memory(const spec::RunSpec& run);

// What the head needs: its chunk of logits, which is kept, and the gradient of its input.
std::uint64_t head_memory(const spec::RunSpec& run);

}  // namespace lockstep::plan
