// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/pass_spans.h"

#include <algorithm>
#include <utility>

namespace lockstep::train {

using schedule::Act;
using schedule::Pass;
using schedule::PipelineEntry;

namespace {

std::optional<Pass> kind_of(Act act) {
  switch (act) {
    case Act::forward:
      return Pass::forward;
    case Act::recompute:  // which of the two is not known before what follows
    case Act::backward:
      return Pass::backward;
    case Act::backward_input:
      return Pass::backward_input;
    case Act::backward_weight:
      return Pass::backward_weight;
    default:
      return std::nullopt;
  }
}

bool continues(const PipelineEntry& open, const PipelineEntry& next) {
  const bool is_same_way =
      open.pass == next.pass || (open.makes_input_gradient() && next.makes_input_gradient());
  return is_same_way && open.micro_batch == next.micro_batch && open.chunk == next.chunk;
}

}  // namespace

std::optional<PipelineEntry> PassSpans::pass_of(const schedule::Action& action) const {
  if (open_ && action.act == Act::loss) return open_->entry;
  const auto pass = kind_of(action.act);
  if (!pass) return std::nullopt;
  const auto chunk = std::ranges::find_if(step_.stage.chunks, [&](const schedule::Chunk& held) {
    return held.first_block <= action.block && action.block < held.end_block;
  });
  return PipelineEntry{
      .pass = *pass,
      .micro_batch = (action.lane - step_.first_lane) * step_.micro_batches + action.micro_batch,
      .chunk = static_cast<int>(chunk - step_.stage.chunks.begin())};
}

std::optional<PassSpan> PassSpans::add(const schedule::Action& action, Clock::time_point began,
                                       Clock::time_point ended) {
  const auto entry = pass_of(action);
  if (!entry) return std::nullopt;
  if (open_ && continues(open_->entry, *entry)) {
    if (action.act != Act::recompute) open_->entry = *entry;
    open_->ended = ended;
    return std::nullopt;
  }
  return std::exchange(open_, PassSpan{.entry = *entry, .began = began, .ended = ended});
}

std::optional<PassSpan> PassSpans::finish() {
  return std::exchange(open_, std::nullopt);
}

}  // namespace lockstep::train
