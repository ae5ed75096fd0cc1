// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/buffers.h"

#include <fstream>
#include <string>

#include <sys/socket.h>

#include "lockstep/transport/connect/address.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::transport::tcp {
namespace {

constexpr int kLoopbackBuffer = 4 * 1024 * 1024;

int system_limit(const char* name) {
  int limit = 0;
  std::ifstream(std::string("/proc/sys/net/core/") + name) >> limit;
  return limit;
}

// Asking for more than the limit would fix the buffer at the limit and end its automatic growth.
void widen(int fd, int option, const char* limit_name) {
  if (system_limit(limit_name) < kLoopbackBuffer) return;
  ::setsockopt(fd, SOL_SOCKET, option, &kLoopbackBuffer, sizeof(kLoopbackBuffer));
}

}  // namespace

void widen_loopback_buffers(int fd) {
  if (!peer_is_loopback(fd)) return;
  widen(fd, SO_RCVBUF, "rmem_max");
  widen(fd, SO_SNDBUF, "wmem_max");
}

}  // namespace lockstep::transport::tcp
