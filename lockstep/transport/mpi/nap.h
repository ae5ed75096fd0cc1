// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "lockstep/transport/connect/connection.h"

namespace lockstep::transport::mpi {

// A descriptor that becomes readable after a while or when somebody calls wake(). MPI has no descriptor to
// sleep on, so its user naps: sleeps a little, looks, and sleeps again.
class Nap {
 public:
  // UsageError when the system has no descriptor left.
  Nap();

  int fd() const { return both_.get(); }

  void begin(std::chrono::nanoseconds duration);
  // Makes the descriptor unreadable again.
  void end();

  // From any thread or signal handler.
  void wake();

 private:
  Descriptor timer_;
  Descriptor event_;
  Descriptor both_;  // an epoll descriptor that watches the other two
};

}  // namespace lockstep::transport::mpi
