// SPDX-License-Identifier: Apache-2.0
//
// What the files with collective cases share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/mesh/lanes.h"
#include "lockstep/mesh/range.h"

#include "tests/comm/collective_cases.h"
#include "tests/support/values.h"

// For functions with a Communicator `world`.
#define EXPECT_SAME(actual, expected, dtype, ...)          \
  EXPECT_EQ(first_difference(actual, expected, dtype), -1) \
      << "rank " << world.rank() << ": " << fmt::format(__VA_ARGS__)

namespace lockstep::test {

// Far more than the transports send unasked, also of one chunk; divides by no number of ranks or segments.
inline constexpr std::size_t kManyElements = 100'003;

// Which ranks have registered memory: bit 0 the even ones, bit 1 the odd ones.
using Registered = unsigned;
inline constexpr Registered kNobody = 0, kEvenRanks = 1, kOddRanks = 2, kEverybody = 3;

// A rank's buffer, with values.
class Operand {
 public:
  Operand(const comm::Communicator& world, Registered registered, std::vector<std::byte> values)
      : plain_(std::move(values)) {
    if ((registered >> (world.rank() % 2) & 1U) == 0) return;
    buffer_ = world.allocate(plain_.size());
    std::ranges::copy(plain_, buffer_.bytes().begin());
    is_registered_ = true;
  }

  Bytes bytes() { return is_registered_ ? buffer_.bytes() : Bytes(plain_); }

 private:
  std::vector<std::byte> plain_;
  comm::Buffer buffer_;
  bool is_registered_ = false;
};

inline Bytes part(Bytes bytes, Range elements, DType dtype) {
  return bytes.subspan(elements.begin * size_of(dtype), elements.size() * size_of(dtype));
}

// This rank's chunk.
inline Range own_chunk(const comm::Communicator& world, std::size_t count) {
  return chunk_range(count, static_cast<std::size_t>(world.size()), static_cast<std::size_t>(world.rank()));
}

// Each rank brings its lanes one by one.
inline comm::LanePieces single_lanes(const LaneOwnership& ownership) {
  comm::LanePieces pieces;
  for (Rank rank = 0; rank < ownership.world(); ++rank) {
    auto& brought = pieces.emplace_back();
    for (int lane = ownership.first_lane[rank]; lane < ownership.first_lane[rank + 1]; ++lane)
      brought.push_back({lane, 1});
  }
  return pieces;
}

// The partial sums that this rank brings; one buffer for the result if there are none.
inline std::vector<std::vector<std::byte>> lane_partials(const comm::Communicator& world,
                                                         const comm::LanePieces& pieces, std::uint32_t seed,
                                                         std::size_t count) {
  std::vector<std::vector<std::byte>> partials;
  for (const Subtree& piece : pieces[world.rank()]) {
    partials.push_back(values_of(piece.first, seed, DType::fp32, count, Values::rough));
  }
  if (partials.empty()) partials.emplace_back(count * sizeof(float));
  return partials;
}

// Work in the background, for collective_cases().
std::vector<CollectiveCase> background_cases();

}  // namespace lockstep::test
