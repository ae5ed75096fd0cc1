// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stop_token>

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

  // Takes the room now, as far as the kernel can do it ahead, so that whoever fills the memory does not wait
  // for it; what was filled before stays. Returns early when it is asked to stop. From any thread, also while
  // the memory is used.
  void take_room(const std::stop_token& stop) const;

 private:
  Bytes bytes_;
};

}  // namespace lockstep
