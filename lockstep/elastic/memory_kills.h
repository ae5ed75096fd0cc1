// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::elastic {

// How often the kernel has killed a process of this machine or of our control group because memory ran out.
class MemoryKills {
 public:
  MemoryKills();

  // Whether it has since the last call.
  bool happened();

 private:
  std::uint64_t count_;
};

}  // namespace lockstep::elastic
