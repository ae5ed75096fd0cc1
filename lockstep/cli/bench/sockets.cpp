// SPDX-License-Identifier: Apache-2.0
//
// The rate of plain sockets: every rank streams to the next one over TCP on loopback, all at once, the bytes
// that the busiest link of the collective must at least carry.
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/memory.h"
#include "lockstep/cli/bench/statistics.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/bench/values.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;
using transport::Descriptor;

constexpr std::chrono::seconds kLimit{30};

[[noreturn]] void fail(std::string_view what) {
  throw CommError(fmt::format("plain sockets: cannot {}: {}", what, std::strerror(errno)));
}

Descriptor tcp_socket() {
  Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail("make a socket");
  return fd;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void prepare_for_streaming(const Descriptor& fd) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

struct Neighbours {
  Descriptor next;
  Descriptor previous;
};

// Ports are told through the communicator. Strangers cannot matter: nothing that comes is kept.
Neighbours join_neighbours(const Communicator& communicator) {
  const Descriptor listening = tcp_socket();
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listening.get(), generic, size) != 0 || ::listen(listening.get(), 1) != 0 ||
      ::getsockname(listening.get(), generic, &size) != 0) {
    fail("listen");
  }
  std::vector<std::int32_t> ports(static_cast<std::size_t>(communicator.size()));
  ports[static_cast<std::size_t>(communicator.rank())] = ntohs(address.sin_port);
  communicator.all_gather(std::as_writable_bytes(std::span(ports)), {.dtype = DType::int32});

  Neighbours neighbours{.next = tcp_socket(), .previous = {}};
  const Rank next = (communicator.rank() + 1) % communicator.size();
  address = loopback(static_cast<std::uint16_t>(ports[static_cast<std::size_t>(next)]));
  if (::connect(neighbours.next.get(), generic, sizeof address) != 0) fail("connect");
  pollfd coming{.fd = listening.get(), .events = POLLIN, .revents = 0};
  if (::poll(&coming, 1, static_cast<int>(std::chrono::milliseconds(kLimit).count())) <= 0)
    fail("be reached in time");
  neighbours.previous = Descriptor(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!neighbours.previous) fail("accept");
  prepare_for_streaming(neighbours.next);
  prepare_for_streaming(neighbours.previous);
  return neighbours;
}

std::size_t streamed_bytes(const Case& what, int ranks) {
  return static_cast<std::size_t>(static_cast<double>(what.bytes) * bus_factor(what.op, ranks));
}

class SocketTrial : public Trial {
 public:
  SocketTrial(const Communicator& communicator, const Case& what)
      : communicator_(communicator),
        neighbours_(join_neighbours(communicator)),
        from_(streamed_bytes(what, communicator.size())),
        to_(from_.bytes().size()) {}

  void fill() override { fill_values(from_.bytes(), DType::uint8, communicator_.rank(), all()); }
  bool is_correct() const override {
    const Rank previous = (communicator_.rank() + communicator_.size() - 1) % communicator_.size();
    return holds_values(to_.bytes(), DType::uint8, previous, all(), 0);
  }
  void clear() override {}
  void meet() override { communicator_.barrier(); }

  void run_once() override {
    const Deadline deadline = Deadline::after(kLimit);
    Bytes out = from_.bytes();
    Bytes in = to_.bytes();
    while (!out.empty() || !in.empty()) {
      const std::size_t before = out.size() + in.size();
      out = out.subspan(moved(::send(neighbours_.next.get(), out.data(), out.size(), MSG_NOSIGNAL), out));
      in = in.subspan(moved(::recv(neighbours_.previous.get(), in.data(), in.size(), 0), in));
      if (out.size() + in.size() == before) wait(out, in, deadline);
    }
  }

 private:
  Range all() const { return {0, from_.bytes().size()}; }

  static std::size_t moved(ssize_t count, Bytes wanted) {
    if (count > 0) return static_cast<std::size_t>(count);
    if (wanted.empty() || (count < 0 && (errno == EAGAIN || errno == EINTR))) return 0;
    throw PeerLost("plain sockets: a neighbour is gone");
  }

  void wait(Bytes out, Bytes in, Deadline deadline) const {
    if (deadline.passed()) throw Timeout("plain sockets: nothing has moved for 30 s");
    std::array<pollfd, 2> either = {
        {{neighbours_.next.get(), static_cast<short>(out.empty() ? 0 : POLLOUT), 0},
         {neighbours_.previous.get(), static_cast<short>(in.empty() ? 0 : POLLIN), 0}}};
    ::poll(either.data(), either.size(), 1'000);
  }

  Communicator communicator_;
  Neighbours neighbours_;
  PlainMemory from_;
  PlainMemory to_;
};

}  // namespace

TrialFactory socket_trials(Communicator communicator) {
  return [communicator = std::move(communicator)](const Case& what) -> std::unique_ptr<Trial> {
    return std::make_unique<SocketTrial>(communicator, what);
  };
}

}  // namespace lockstep::cli
