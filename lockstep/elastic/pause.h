// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <poll.h>
#include <sys/eventfd.h>

namespace lockstep::elastic {

// Waits so long, or until the eventfd is written, which is then taken.
inline void pause(std::chrono::milliseconds time, int event) {
  pollfd entry = {event, POLLIN, 0};
  ::poll(&entry, 1, static_cast<int>(time.count()));
  eventfd_t ignored = 0;
  ::eventfd_read(event, &ignored);
}

}  // namespace lockstep::elastic
