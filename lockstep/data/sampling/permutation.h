// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::data {

// A random-looking order of [0, count) that is computed, not stored: a Feistel network whose round function
// is Philox, on the smallest square power-of-two domain that holds count, walked along its cycles until it
// comes back into [0, count) (Black, Rogaway: Ciphers with Arbitrary Finite Domains, 2002; fewer than four
// visits on average). Equal arguments give equal orders on every machine.
class Permutation {
 public:
  Permutation(std::uint64_t count, std::uint64_t key);  // count >= 1

  // The element at place `index` < count; different places have different elements.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t count_;
  std::uint64_t key_;
  int half_bits_;
};

// The endless sequence of samples that visits [0, count) once in every epoch, each time in another order.
// `stream` tells sequences of one seed apart.
class EpochShuffle {
 public:
  EpochShuffle(std::uint64_t count, std::uint64_t seed, std::uint64_t stream);  // count >= 1

  std::uint64_t count() const { return count_; }
  std::uint64_t epoch_of(std::uint64_t position) const { return position / count_; }
  std::uint64_t operator()(std::uint64_t position) const;

 private:
  std::uint64_t count_;
  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace lockstep::data
