// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Registered memory for the scratch buffers of programs, kept for the next operation. Not thread-safe.
class ScratchPool {
 public:
  explicit ScratchPool(transport::Endpoint& endpoint) : endpoint_(endpoint) {}

  // At least `bytes`; the contents are unspecified. Throws what Endpoint::allocate() throws, or
  // std::bad_alloc.
  Bytes take(std::size_t bytes);
  // Needs no memory.
  void give_back(Bytes memory) { free_.push_back(memory); }

 private:
  transport::Endpoint& endpoint_;  // outlives this, and with it goes the memory
  std::vector<Bytes> free_;
  std::size_t allocated_ = 0;  // blocks; `free_` has room for all
};

}  // namespace lockstep::comm
