// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

// The first thing that is wrong with the programs; `entry` is the program's length when something is missing.
struct PipelineViolation {
  Rank rank = 0;
  std::size_t entry = 0;
  std::string reason;
};

// "stage 1, pass 3 (B2): ...", with passes counted from 1.
std::string to_string(const PipelineViolation& violation, const Pipeline& pipeline);

struct PipelineCheck {
  std::optional<PipelineViolation> violation;
  std::vector<int> peak_live;  // by rank, see peak_live_activations(); empty when there is a violation
};

// Proves of all ranks together, in this order (the violation is the first by proof, then by rank and entry):
//
// 1. Passes. Every micro-batch passes every chunk forward once and backward once, whole or split; backward
//    after forward, and the weight gradient after the input gradient.
// 2. Bits. Micro-batches pass every chunk in their order: forward, where the loss adds to the gradient of the
//    head, and backward, input and weight gradients alike.
// 3. Messages. Between two ranks there is one stream of activations and one of gradients in each direction,
//    on which the k-th message sent is the k-th received, as comm matches the sends and receives of a stream.
//    A rank sends a message when its pass has ended, and receives in the order of the passes that need them:
//    both orders are the same on every stream.
// 4. Progress. No rank waits for ever. Sends are asynchronous and never wait: what was sent stays in its
//    sender's buffer until it is received, so a rank waits only for the input of its next pass. What a rank
//    makes for a chunk of its own is not sent, and is there at once.
//
// Any numbers and programs may be given, those of strangers too.
PipelineCheck check_pipeline(const Pipeline& pipeline);

}  // namespace lockstep::schedule
