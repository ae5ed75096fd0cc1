// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/connection.h"

#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::transport {
namespace {

// Waits until the connection may move bytes again; `verb` and the counts are for the error.
void wait_for(Connection& connection, Deadline deadline, std::string_view verb, std::size_t done,
              std::size_t total) {
  if (wait_ready(connection.fd(), connection.awaits(), deadline)) return;
  throw Timeout(fmt::format("{} {}: silent for {:.1f} s after {} of {} bytes", verb,
                            describe_peer(connection.fd()),
                            std::chrono::duration<double>(deadline.waited()).count(), done, total));
}

[[noreturn]] void throw_closed(Connection& connection, std::string_view verb, std::size_t done,
                               std::size_t total) {
  throw PeerLost(fmt::format("{} {}: {} after {} of {} bytes", verb, describe_peer(connection.fd()),
                             connection.close_reason(), done, total));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void Connection::read_all(Bytes into, Deadline deadline) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::ptrdiff_t got = try_read(into.subspan(done));
    if (got == kClosed) throw_closed(*this, "reading from", done, into.size());
    if (got == kWouldBlock) {
      wait_for(*this, deadline, "reading from", done, into.size());
    } else {
      done += static_cast<std::size_t>(got);
    }
  }
}

void Connection::write_all(ConstBytes bytes, Deadline deadline) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ConstBytes rest = bytes.subspan(done);
    const std::ptrdiff_t put = try_write(std::span(&rest, 1));
    if (put == kClosed) throw_closed(*this, "writing to", done, bytes.size());
    if (put == kWouldBlock) {
      wait_for(*this, deadline, "writing to", done, bytes.size());
    } else {
      done += static_cast<std::size_t>(put);
    }
  }
}

}  // namespace lockstep::transport
