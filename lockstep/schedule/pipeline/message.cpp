// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/pipeline/message.h"

namespace lockstep::schedule {
namespace {

std::optional<PipelineMessage> between(const Placement& placement, const PipelineEntry& entry, int from_part,
                                       int to_part) {
  const auto exists = [&](int part) { return part >= 0 && part < placement.parts(); };
  if (!exists(from_part) || !exists(to_part)) return std::nullopt;
  return PipelineMessage{
      .payload = entry.pass == Pass::forward ? Payload::activation : Payload::gradient,
      .micro_batch = entry.micro_batch,
      .from_part = from_part,
      .to_part = to_part,
      .from = placement.holder_of(from_part).rank,
      .to = placement.holder_of(to_part).rank,
  };
}

// To the part that comes next on the way of the entry: up the model going forward, down going backward.
int direction(const PipelineEntry& entry) {
  return entry.pass == Pass::forward ? 1 : -1;
}

}  // namespace

std::optional<PipelineMessage> input_of(const Placement& placement, Rank rank, const PipelineEntry& entry) {
  if (entry.pass == Pass::backward_weight) return std::nullopt;
  const int part = placement.part_of(rank, entry.chunk);
  return between(placement, entry, part - direction(entry), part);
}

std::optional<PipelineMessage> output_of(const Placement& placement, Rank rank, const PipelineEntry& entry) {
  if (entry.pass == Pass::backward_weight) return std::nullopt;
  const int part = placement.part_of(rank, entry.chunk);
  return between(placement, entry, part, part + direction(entry));
}

}  // namespace lockstep::schedule
