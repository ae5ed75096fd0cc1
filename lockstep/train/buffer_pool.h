// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::train {

// Registered memory that is used again and again. Not for several threads.
class BufferPool {
 public:
  explicit BufferPool(const comm::Communicator& communicator) : communicator_(communicator) {}

  // With undefined contents.
  comm::Buffer take(std::size_t bytes);
  void give_back(comm::Buffer&& buffer);

 private:
  comm::Communicator communicator_;
  std::map<std::size_t, std::vector<comm::Buffer>> free_;  // by size
};

}  // namespace lockstep::train
