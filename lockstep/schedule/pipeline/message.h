// SPDX-License-Identifier: Apache-2.0
//
// What the stages of a pipeline send each other; it follows from programs and placement.
#pragma once

#include <optional>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

enum class Payload : std::uint8_t { activation, gradient };

// An output of a part on its way to the next one, or the gradient of an input on its way to the one before.
struct PipelineMessage {
  Payload payload = Payload::activation;
  int micro_batch = 0;
  int from_part = 0;
  int to_part = 0;
  Rank from = 0;
  Rank to = 0;

  bool operator==(const PipelineMessage&) const = default;
};

// What must be there before the entry of this rank runs, and what it makes for another part. None at the ends
// of the model (the gradient that the last part begins with comes from its own loss) and for backward_weight.
// from == to when one rank holds both parts, as at the turn of a V: then nothing is sent.
std::optional<PipelineMessage> input_of(const Placement& placement, Rank rank, const PipelineEntry& entry);
std::optional<PipelineMessage> output_of(const Placement& placement, Rank rank, const PipelineEntry& entry);

}  // namespace lockstep::schedule
