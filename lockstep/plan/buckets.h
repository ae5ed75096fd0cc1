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

// How many elements the memory has room for that one of `sizes` gets when they come and go: those that differ
// by little, as the last layer and the others, take turns with the same memory.
std::uint64_t room_for(std::uint64_t size, std::span<const std::uint64_t> sizes);

}  // namespace lockstep::plan
