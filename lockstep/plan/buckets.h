// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/schedule/step/step.h"

namespace lockstep::plan {

// About how many parameters are reduced, and fetched, together.
inline constexpr std::int64_t kBucketElements = std::int64_t{4} << 20;

// Neighbouring blocks together until they have so many elements.
std::vector<schedule::Chunk> group_blocks(std::span<const std::int64_t> elements, std::int64_t enough);

}  // namespace lockstep::plan
