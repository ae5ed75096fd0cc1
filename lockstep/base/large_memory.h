// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "lockstep/base/bytes.h"

namespace lockstep {

// Memory in large pages where the kernel has them: to fill it for the first time takes a fraction of what
// ordinary pages take. Zeros at first; takes room as it is filled.
class LargeMemory {
 public:
  LargeMemory() = default;
  // std::bad_alloc when there is not so much.
  explicit LargeMemory(std::size_t bytes);
  ~LargeMemory();
  LargeMemory(LargeMemory&& other) noexcept;
  LargeMemory& operator=(LargeMemory&& other) noexcept;

  Bytes bytes() const { return bytes_; }  // aligned to a page

 private:
  Bytes bytes_;
};

}  // namespace lockstep
