// SPDX-License-Identifier: Apache-2.0
//
// The rate of plain sockets: every rank streams to the next one over TCP on loopback, all at once, the bytes
// that the busiest link of the collective must at least carry.
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/memory.h"
#include "lockstep/cli/bench/neighbours.h"
#include "lockstep/cli/bench/statistics.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/bench/values.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;

constexpr std::chrono::seconds kLimit{30};

Neighbours neighbours_of(const Communicator& communicator) {
  const transport::Credentials credentials = ring_credentials(communicator);
  transport::Listener door = ring_door(credentials);
  return join_neighbours(communicator, credentials, door);
}

std::size_t streamed_bytes(const Case& what, int ranks) {
  return static_cast<std::size_t>(static_cast<double>(what.bytes) * bus_factor(what.op, ranks));
}

class SocketTrial : public Trial {
 public:
  SocketTrial(const Communicator& communicator, const Case& what)
      : communicator_(communicator),
        neighbours_(neighbours_of(communicator)),
        from_(streamed_bytes(what, communicator.size())),
        to_(from_.bytes().size()) {}

  void fill() override {
    fill_values(from_.bytes(), DType::uint8, communicator_.rank(), all());
    std::memset(to_.bytes().data(), 0, to_.bytes().size());
  }
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
      out = out.subspan(moved(::send(neighbours_.next->fd(), out.data(), out.size(), MSG_NOSIGNAL), out));
      in = in.subspan(moved(::recv(neighbours_.previous->fd(), in.data(), in.size(), 0), in));
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
        {{neighbours_.next->fd(), static_cast<short>(out.empty() ? 0 : POLLOUT), 0},
         {neighbours_.previous->fd(), static_cast<short>(in.empty() ? 0 : POLLIN), 0}}};
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
