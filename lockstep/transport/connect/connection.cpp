// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/connection.h"

#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::transport {
namespace {

[[noreturn]] void throw_silent(Connection& connection, Deadline deadline, std::string_view verb,
                               std::size_t done, std::size_t total) {
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

void Connection::read_all(Bytes into, Deadline deadline, const std::stop_token& stop) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::ptrdiff_t got = try_read(into.subspan(done));
    if (got == kClosed) throw_closed(*this, "reading from", done, into.size());
    if (got != kWouldBlock) {
      done += static_cast<std::size_t>(got);
    } else if (!wait_ready(fd(), awaits(), deadline, stop)) {
      if (!stop.stop_requested()) throw_silent(*this, deadline, "reading from", done, into.size());
      throw Aborted(fmt::format("reading from {} was given up after {} of {} bytes", describe_peer(fd()),
                                done, into.size()));
    }
  }
}

void Connection::write_all(ConstBytes bytes, Deadline deadline) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ConstBytes rest = bytes.subspan(done);
    const std::ptrdiff_t put = try_write(std::span(&rest, 1));
    if (put == kClosed) throw_closed(*this, "writing to", done, bytes.size());
    if (put != kWouldBlock) {
      done += static_cast<std::size_t>(put);
    } else if (!wait_ready(fd(), awaits(), deadline)) {
      throw_silent(*this, deadline, "writing to", done, bytes.size());
    }
  }
}

}  // namespace lockstep::transport
