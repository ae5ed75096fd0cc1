// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lockstep/schedule/step/step.h"

namespace lockstep::schedule {

// The first thing that is wrong with a program; `action` is its length when something is missing in the end.
struct StepViolation {
  std::size_t action = 0;
  std::string reason;
};

// What a program needs, counted from the program itself.
struct StepCost {
  int kept_passes = 0;           // the most recorded passes of blocks that exist at the same time
  int kept_inputs = 0;           // the most inputs of blocks kept without their passes
  int slots = 0;                 // gradient buffers
  std::uint64_t pass_bytes = 0;  // the most that passes and inputs take at the same time, by block_memory
  // What buckets that come and go take, by bucket_memory: of each size the most that are there at the same
  // time.
  std::uint64_t bucket_bytes = 0;
};

struct StepCheck {
  std::optional<StepViolation> violation;
  StepCost cost;  // meaningful when there is no violation
};

// Proves that the program does the step: every micro-batch of every lane passes every block of the rank
// forward and backward exactly once and in order, in the passes of the spec; what a pass needs is received
// before it and what it makes is sent after it; a pass is there when it is gone back through; lanes are
// summed in the order of their micro-batches, over tensor lanes where these share a parameter, and added as
// the subtrees of the one tree; each bucket is reduced once, after its last contribution, from the slots of
// the pieces, and over hosts if these have copies; only finished sums are clipped, agreed on
// and applied, once; and shares of the update are gathered from all ranks, once, before the program ends.
StepCheck check_step(const StepSpec& spec, const StepProgram& program);

// Of ranks that hold the same blocks: proves in addition that ranks with these programs call the same
// collectives in the same order. The first that is not like the program before it in the list is told, with
// the number of the program.
struct StepsViolation {
  std::size_t program = 0;
  StepViolation violation;
};
std::optional<StepsViolation> check_steps(std::span<const StepSpec> specs,
                                          std::span<const StepProgram> programs);

// Of the stages of one pipeline, in their order: proves that they hold the model, all of it once, and that
// their passes are a pipeline that check_pipeline() accepts. `action` of the violation is then a pass.
std::optional<StepsViolation> check_stages(std::span<const StepSpec> stages);

}  // namespace lockstep::schedule
