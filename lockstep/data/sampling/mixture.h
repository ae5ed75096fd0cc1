// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/sampling/permutation.h"

namespace lockstep::data {

// One of the corpora of a run: how many samples it has, and its share in what is drawn.
struct MixturePart {
  std::uint64_t samples = 0;
  double weight = 1.0;
};

// The endless sequence of samples of several corpora. They alternate as evenly as their weights allow: at any
// position the number of samples that each has given differs from its share by less than the number of
// corpora. Each corpus goes through its own epochs, one after another. What stands at a position is computed
// from the seed alone.
class Mixture {
 public:
  // Shares are multiples of 1 / kShares, by largest remainder.
  static constexpr std::uint64_t kShares = 65536;

  struct Sample {
    std::size_t part = 0;
    std::uint64_t index = 0;  // below the samples of the part
    std::uint64_t epoch = 0;  // of the part
    bool operator==(const Sample&) const = default;
  };

  // UsageError when there is no part, one has no samples, or a weight is not positive or below 1 / kBlock of
  // all.
  Mixture(const std::vector<MixturePart>& parts, std::uint64_t seed);

  Sample at(std::uint64_t position) const;

 private:
  std::vector<EpochShuffle> shuffles_;
  std::vector<std::uint64_t> shares_;  // of kShares
};

}  // namespace lockstep::data
