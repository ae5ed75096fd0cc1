// SPDX-License-Identifier: Apache-2.0
//
// Pipeline schedules as data: the program of every stage, a list of passes in the order in which it computes
// them. make_pipeline() returns it, check/pipeline.h proves it, timeline.h times it, csv.h stores it.
//
// A *stage* is a rank of the pipeline axis. It holds one or more chunks of the model (placement.h). A
// *micro-batch* passes every part of the model forward and then backward. The backward pass of a chunk may be
// split: backward_input makes the gradient that the part before waits for, backward_weight the gradients of
// the chunk's weights, at any later time.
//
// In every schedule the micro-batches pass a chunk in their order, 0 to m - 1, forward and backward, so all
// schedules give the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/schedule/pipeline/placement.h"

namespace lockstep::schedule {

enum class PipelineSchedule : std::uint8_t {
  naive,        // one micro-batch after the other: one stage computes at a time
  gpipe,        // all forward, then all backward
  one_f_one_b,  // "1f1b": backward as soon as possible, so at most as many are kept as there are stages
  interleaved,  // 1f1b on several chunks per stage: less idle time, more messages
  zbh1,         // 1f1b with a split backward pass: a third of the idle time, the same memory
  zbv,          // two chunks per stage in a V, split backward pass: no idle time between a stage's passes
};
std::string_view name_of(PipelineSchedule schedule);
PipelineSchedule parse_pipeline_schedule(std::string_view name);  // UsageError when there is none

enum class Pass : std::uint8_t { forward, backward, backward_input, backward_weight };
inline constexpr std::array kPasses = {Pass::forward, Pass::backward, Pass::backward_input,
                                       Pass::backward_weight};

struct PipelineEntry {
  Pass pass = Pass::forward;
  int micro_batch = 0;
  int chunk = 0;

  // A whole backward pass does both.
  bool makes_input_gradient() const { return pass == Pass::backward || pass == Pass::backward_input; }
  bool adds_weight_gradient() const { return pass == Pass::backward || pass == Pass::backward_weight; }

  bool operator==(const PipelineEntry&) const = default;
};
using PipelineProgram = std::vector<PipelineEntry>;  // of one stage

// F (forward), B (backward), I (backward_input) or W (backward_weight) and the micro-batch: "F3"; then the
// chunk unless it is the first: "W3.1".
char letter_of(Pass pass);
std::string to_string(const PipelineEntry& entry);

struct Pipeline {
  Placement placement;
  int micro_batches = 1;
  std::vector<PipelineProgram> programs;  // by rank

  bool operator==(const Pipeline&) const = default;
};

// What is accepted from users, here and in files.
inline constexpr int kMaxPipelineStages = 1024;
inline constexpr int kMaxMicroBatches = 65536;
inline constexpr int kMaxVirtualStages = 64;
inline constexpr std::int64_t kMaxPipelinePasses = std::int64_t{1} << 20;  // forward, over all stages

struct PipelineSpec {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 1;
  int micro_batches = 1;
  // Chunks per stage, for interleaved. zbv has 2 in any case, the others have 1.
  int virtual_stages = 1;
};

// UsageError when the numbers are out of range or do not fit the schedule.
Placement placement_of(const PipelineSpec& spec);

// Pure. Any number of stages and micro-batches, also fewer micro-batches than stages. UsageError as above.
Pipeline make_pipeline(const PipelineSpec& spec);

}  // namespace lockstep::schedule
