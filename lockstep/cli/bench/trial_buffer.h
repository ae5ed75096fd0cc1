// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "lockstep/cli/bench/memory.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::cli {

// Registered memory of the communicator, or memory it knows nothing of; zeros at first.
class TrialBuffer {
 public:
  TrialBuffer(const comm::Communicator& communicator, std::size_t bytes, bool registered)
      : registered_(registered && bytes > 0 ? communicator.allocate(bytes) : comm::Buffer()),
        plain_(registered ? PlainMemory() : PlainMemory(bytes)) {
    clear();
  }

  Bytes bytes() const { return plain_.bytes().empty() ? registered_.bytes() : plain_.bytes(); }
  void clear() const { std::ranges::fill(bytes(), std::byte{}); }

 private:
  comm::Buffer registered_;
  PlainMemory plain_;
};

}  // namespace lockstep::cli
