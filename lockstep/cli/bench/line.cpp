// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/line.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/protocol.h"
#include "lockstep/cli/errors.h"
#include "lockstep/rendezvous/open_files.h"

namespace lockstep::cli {
namespace {

using transport::Descriptor;

std::string reason() {
  return std::generic_category().message(errno);
}

Descriptor unix_socket() {
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) rendezvous::cannot("make a Unix socket");
  return fd;
}

sockaddr_un socket_address(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof address.sun_path) {
    throw UsageError(
        fmt::format("{} is too long for the name of a socket; set TMPDIR to a shorter folder", text));
  }
  std::copy(text.begin(), text.end(), address.sun_path);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Rounded up, so that a wait never ends just before its deadline.
int poll_timeout(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
  return static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000));
}

// False when the deadline passed first.
bool wait_until_ready(int fd, short events, Deadline deadline, rendezvous::SignalInbox* signals) {
  for (;;) {
    std::array<pollfd, 2> waiting = {{{fd, events, 0}, {signals ? signals->fd() : -1, POLLIN, 0}}};
    const int ready = ::poll(waiting.data(), waiting.size(), poll_timeout(deadline));
    if (waiting[1].revents != 0) throw Interrupted(signals->take());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw CommError(fmt::format("cannot wait for a socket: {}", reason()));
    if (deadline.passed()) return false;
  }
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

LineSocket LineSocket::connect(const std::filesystem::path& address, std::string peer) {
  Descriptor fd = unix_socket();
  const sockaddr_un to = socket_address(address);
  if (::connect(fd.get(), generic(to), sizeof to) != 0) {
    throw CommError(fmt::format("cannot reach {} at {}: {}", peer, address.native(), reason()));
  }
  return {std::move(fd), std::move(peer)};
}

void LineSocket::wait_for(short events, Deadline deadline) const {
  if (wait_until_ready(fd_.get(), events, deadline, signals_)) return;
  throw Timeout(fmt::format("{} has been silent for {:.1f} s", peer_, seconds(deadline.waited())));
}

void LineSocket::send(std::string_view line, Deadline deadline) {
  std::string out(line);
  out += '\n';
  for (std::size_t sent = 0; sent < out.size();) {
    wait_for(POLLOUT, deadline);
    const ssize_t n = ::send(fd_.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) throw PeerLost(fmt::format("{} is gone: {}", peer_, reason()));
    sent += static_cast<std::size_t>(n);
  }
}

std::string LineSocket::receive(Deadline deadline) {
  for (;;) {
    const std::size_t end = buffered_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    if (buffered_.size() > kMaxBenchLine)
      throw DataError(fmt::format("{} sent a line over {} bytes", peer_, kMaxBenchLine));
    wait_for(POLLIN, deadline);
    std::array<char, kMaxBenchLine> chunk{};
    const ssize_t n = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) throw PeerLost(fmt::format("{} is gone: its process ended", peer_));
    buffered_.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

LineListener::LineListener() : address_(folder_.path() / "agents"), fd_(unix_socket()) {
  const sockaddr_un at = socket_address(address_);
  if (::bind(fd_.get(), generic(at), sizeof at) != 0 || ::listen(fd_.get(), kMaxBenchRanks) != 0) {
    throw CommError(fmt::format("cannot listen at {}: {}", address_.native(), reason()));
  }
}

std::optional<LineSocket> LineListener::accept(Deadline deadline, rendezvous::SignalInbox& signals) {
  if (!wait_until_ready(fd_.get(), POLLIN, deadline, &signals)) return std::nullopt;
  Descriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) rendezvous::cannot("accept a rank");
  return LineSocket(std::move(fd), "an agent");
}

}  // namespace lockstep::cli
