// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/schedule/pipeline/message.h"

namespace lockstep::schedule {

// How far the stages of a pipeline come when each computes its passes in order and waits for what a pass
// needs. Sends never wait, so one order decides for all: a pass that can run stays able to.
struct Played {
  struct Place {
    Rank rank = 0;
    std::size_t entry = 0;
  };
  std::vector<Place> order;          // passes that ran, in an order in which they can
  std::vector<std::size_t> reached;  // by rank: how many of its passes ran
};

// Every entry must be inside the placement and the micro-batches. Takes memory for every possible message.
Played play(const Pipeline& pipeline);

// Numbers the possible messages of a pipeline from 0.
class MessageNumbers {
 public:
  explicit MessageNumbers(const Pipeline& pipeline)
      : micro_batches_(static_cast<std::size_t>(pipeline.micro_batches)),
        parts_(static_cast<std::size_t>(pipeline.placement.parts())) {}

  std::size_t count() const { return 2 * parts_ * micro_batches_; }
  std::size_t operator()(const PipelineMessage& message) const {
    const auto payload = static_cast<std::size_t>(message.payload);
    const auto part = static_cast<std::size_t>(message.to_part);
    return (payload * parts_ + part) * micro_batches_ + static_cast<std::size_t>(message.micro_batch);
  }

 private:
  std::size_t micro_batches_;
  std::size_t parts_;
};

}  // namespace lockstep::schedule
