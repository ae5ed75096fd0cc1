// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/transport/connect/connection.h"

namespace lockstep::transport {

// Descriptors of others in a set whose own descriptor is readable while one of them is.
class PollSet {
 public:
  // Both raise UsageError when the system does not allow it.
  PollSet();
  void add(int fd);
  void remove(int fd);

  int fd() const { return epoll_.get(); }

 private:
  Descriptor epoll_;
};

}  // namespace lockstep::transport
