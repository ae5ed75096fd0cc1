// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::model {

// Which tokens may come next, and how likely.
struct Sampling {
  double temperature = 1.0;  // 0: always the most likely token
  std::size_t top_k = 0;     // only so many of the most likely tokens; 0: all
  double top_p = 1.0;        // only the most likely tokens that together have this probability, above 0
};

// The token that `random` (64 uniform bits) chooses. Pure: equal arguments give equal tokens. Of equal logits
// the lower token counts as more likely. UsageError when a logit is not finite.
std::size_t choose_token(std::span<const float> logits, const Sampling& sampling, std::uint64_t random);

}  // namespace lockstep::model
