// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/base/philox.h"
#include "lockstep/elastic/liveness.h"

namespace lockstep::elastic::simulation {

// All chance of a simulated run: the same seed draws the same numbers in the same order.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t number() { return philox64(seed_, 0, ++drawn_); }
  // From `least` to `most`, both included.
  int between(int least, int most) {
    return least + static_cast<int>(number() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool happens(double probability) { return static_cast<double>(number() >> 11) * 0x1p-53 < probability; }
  Time milliseconds(int least, int most) { return std::chrono::milliseconds(between(least, most)); }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

}  // namespace lockstep::elastic::simulation
