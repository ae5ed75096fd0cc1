// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/step/step.h"

#include <utility>

namespace lockstep::schedule {

std::string_view name_of(Act act) {
  switch (act) {
    case Act::clear:
      return "clear";
    case Act::fetch:
      return "fetch";
    case Act::use:
      return "use";
    case Act::drop:
      return "drop";
    case Act::receive_activation:
      return "receive_activation";
    case Act::forward:
      return "forward";
    case Act::send_activation:
      return "send_activation";
    case Act::loss:
      return "loss";
    case Act::receive_gradient:
      return "receive_gradient";
    case Act::recompute:
      return "recompute";
    case Act::backward:
      return "backward";
    case Act::backward_input:
      return "backward_input";
    case Act::backward_weight:
      return "backward_weight";
    case Act::send_gradient:
      return "send_gradient";
    case Act::send_head_gradient:
      return "send_head_gradient";
    case Act::receive_head_gradient:
      return "receive_head_gradient";
    case Act::settle:
      return "settle";
    case Act::sum_shared:
      return "sum_shared";
    case Act::merge:
      return "merge";
    case Act::reduce:
      return "reduce";
    case Act::add_hosts:
      return "add_hosts";
    case Act::share_losses:
      return "share_losses";
    case Act::finish:
      return "finish";
    case Act::clip:
      return "clip";
    case Act::agree:
      return "agree";
    case Act::update:
      return "update";
    case Act::gather:
      return "gather";
    case Act::arrive:
      return "arrive";
    case Act::send_head:
      return "send_head";
    case Act::receive_head:
      return "receive_head";
  }
  return "?";
}

Stage stage_of(const StepSpec& spec) {
  if (spec.stage) return *spec.stage;
  Stage whole = {.placement = {}, .chunks = {{0, spec.blocks}}};
  const int micro_batches = (spec.end_lane - spec.first_lane) * spec.micro_batches;
  for (int i = 0; i < micro_batches; ++i) {
    whole.passes.push_back({.pass = Pass::forward, .micro_batch = i});
    whole.passes.push_back({.pass = Pass::backward, .micro_batch = i});
  }
  return whole;
}

Stage breadth_first_stage(std::vector<Chunk> chunks, int micro_batches) {
  const auto count = static_cast<int>(chunks.size());
  Stage stage = {.placement = {.stages = 1, .chunks = count}, .chunks = std::move(chunks)};
  for (int chunk = 0; chunk < count; ++chunk) {
    for (int i = 0; i < micro_batches; ++i) stage.passes.push_back({Pass::forward, i, chunk});
  }
  for (int chunk = count - 1; chunk >= 0; --chunk) {
    for (int i = 0; i < micro_batches; ++i) stage.passes.push_back({Pass::backward, i, chunk});
  }
  return stage;
}

std::optional<int> chunk_of_part(const Stage& stage, int part) {
  const Placement::Holder holder = stage.placement.holder_of(part);
  return holder.rank == stage.rank ? std::optional(holder.chunk) : std::nullopt;
}

std::optional<int> own_neighbour(const Stage& stage, int chunk, int direction) {
  const int part = stage.placement.part_of(stage.rank, chunk) + direction;
  if (part < 0 || part >= stage.placement.parts()) return std::nullopt;
  return chunk_of_part(stage, part);
}

}  // namespace lockstep::schedule
