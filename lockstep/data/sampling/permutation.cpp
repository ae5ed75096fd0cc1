// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/sampling/permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"

namespace lockstep::data {
namespace {

// Four make a pseudorandom permutation of a large domain (Luby, Rackoff); tiny domains mix evenly only with
// more.
constexpr std::uint64_t kRounds = 8;

}  // namespace

Permutation::Permutation(std::uint64_t count, std::uint64_t key)
    : count_(count),
      key_(key),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2)) {
  LOCKSTEP_CHECK(count >= 1, "a permutation of nothing");
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  LOCKSTEP_CHECK(index < count_, "a place beyond the permutation");
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t value = index;
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      left ^= philox64(key_, round, right) & mask;
      std::swap(left, right);
    }
    value = left << half_bits_ | right;
  } while (value >= count_);
  return value;
}

EpochShuffle::EpochShuffle(std::uint64_t count, std::uint64_t seed, std::uint64_t stream)
    : count_(count), seed_(seed), stream_(stream) {
  LOCKSTEP_CHECK(count >= 1, "a shuffle of nothing");
}

std::uint64_t EpochShuffle::operator()(std::uint64_t position) const {
  return Permutation(count_, philox64(seed_, stream_, epoch_of(position)))(position % count_);
}

}  // namespace lockstep::data
