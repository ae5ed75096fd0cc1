// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/socket.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

constexpr int kBacklog = 1024;
constexpr std::chrono::seconds kListenLookup{10};

// A vanished host is noticed by keepalive when the connection is idle, and by the deadline of the call when
// bytes are under way. No TCP_USER_TIMEOUT: it would take the place of the number of probes, and end
// connections to processes that are alive but do not read.
constexpr int kKeepAliveIdleSeconds = 10;
constexpr int kKeepAliveIntervalSeconds = 5;
constexpr int kKeepAliveProbes = 4;

void set_option(int fd, int level, int name, int value) {
  const int result = ::setsockopt(fd, level, name, &value, sizeof(value));
  LOCKSTEP_CHECK(result == 0, fmt::format("setsockopt({}, {}): {}", level, name, std::strerror(errno)));
}

Descriptor open_socket(int family) {
  Descriptor fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw CommError(fmt::format("cannot open a socket: {}", reason_of(errno)));
  return fd;
}

template <typename Call>
SocketAddress name_by(Call call, int fd) {
  SocketAddress name;
  name.length = sizeof(name.storage);
  if (call(fd, reinterpret_cast<sockaddr*>(&name.storage), &name.length) != 0) name.length = 0;
  return name;
}

bool same(const SocketAddress& a, const SocketAddress& b) {
  return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
}

std::uint16_t port_of(const SocketAddress& address) {
  if (address.family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

std::string text_of(int family, const void* binary) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, binary, text.data(), text.size()) == nullptr ? "?" : text.data();
}

// An IPv4 address that reached a socket of both families is written as what it is.
std::string host_of(const SocketAddress& address) {
  if (address.family() != AF_INET6) {
    return text_of(AF_INET, &reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr);
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
  return IN6_IS_ADDR_V4MAPPED(&v6) ? text_of(AF_INET, &v6.s6_addr[12]) : text_of(AF_INET6, &v6);
}

// Readable once the caller is to stop; costs nothing when nobody can ask for it.
class StopEvent {
 public:
  explicit StopEvent(const std::stop_token& stop)
      : event_(stop.stop_possible() ? open_event() : Descriptor()),
        on_stop_(stop, Ring{.fd = event_.get()}) {}

  int fd() const { return event_.get(); }

 private:
  struct Ring {
    int fd;
    void operator()() const { ::eventfd_write(fd, 1); }
  };

  static Descriptor open_event() {
    Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event) throw CommError(fmt::format("cannot wait for a stop: {}", reason_of(errno)));
    return event;
  }

  Descriptor event_;
  std::stop_callback<Ring> on_stop_;
};

[[noreturn]] void throw_listen_error(const Address& address, int error) {
  if (error == EADDRINUSE && address.is_unix()) {
    throw UsageError(
        fmt::format("the name {} is in use by another process: choose another name or stop that "
                    "process",
                    address.to_string()));
  }
  if (error == EADDRINUSE) {
    throw UsageError(
        fmt::format("port {} on {} is in use by another process: choose another port or stop "
                    "that process",
                    address.port, address.host));
  }
  if (error == EADDRNOTAVAIL) {
    throw UsageError(
        fmt::format("cannot listen on {}: {} is not an address of this host; give one of its own",
                    address.to_string(), address.host));
  }
  if (error == EACCES) {
    throw UsageError(fmt::format(
        "cannot listen on {}: ports below 1024 need privileges; choose a higher port", address.to_string()));
  }
  throw UsageError(fmt::format("cannot listen on {}: {}", address.to_string(), std::strerror(error)));
}

SocketAddress resolve_for_listening(const Address& address) {
  try {
    return resolve(address, Deadline::after(kListenLookup)).front();
  } catch (const CommError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

bool wait_ready(int fd, Readiness readiness, Deadline deadline, const std::stop_token& stop) {
  const StopEvent stopped(stop);
  const short events = readiness == Readiness::read ? POLLIN : POLLOUT;
  // poll() passes over the second where nobody can ask for a stop.
  std::array<pollfd, 2> entries{pollfd{.fd = fd, .events = events, .revents = 0},
                                pollfd{.fd = stopped.fd(), .events = POLLIN, .revents = 0}};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    const int limit_ms = static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
    const int ready = ::poll(entries.data(), entries.size(), limit_ms);
    if (ready > 0) return entries[0].revents != 0;
    if (deadline.passed()) return false;
  }
}

bool has_ipv6() {
  return static_cast<bool>(Descriptor(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)));
}

Descriptor open_bound_socket(const Address& address) {
  const SocketAddress where = resolve_for_listening(address);
  Descriptor fd = open_socket(where.family());
  if (!address.is_unix()) set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (where.family() == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd.get(), where.get(), where.length) != 0) throw_listen_error(address, errno);
  return fd;
}

Descriptor open_listening_socket(const Address& address) {
  Descriptor fd = open_bound_socket(address);
  if (::listen(fd.get(), kBacklog) != 0) throw_listen_error(address, errno);
  return fd;
}

Address bound_address(int fd, const Address& asked) {
  if (asked.is_unix()) return asked;
  Address bound = asked;
  bound.port = port_of(local_end(fd));
  return bound;
}

Descriptor connect_socket(const SocketAddress& to, Deadline deadline, const std::stop_token& stop) {
  Descriptor fd = open_socket(to.family());
  if (::connect(fd.get(), to.get(), to.length) != 0) {
    if (errno != EINPROGRESS) throw CommError(std::strerror(errno));
    if (!wait_ready(fd.get(), Readiness::write, deadline, stop)) throw CommError("no answer");
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) throw CommError(std::strerror(error));
  }
  // A port of the range the system hands out can be given to this very socket, which then meets itself.
  if (to.family() != AF_UNIX && same(local_end(fd.get()), remote_end(fd.get()))) {
    throw CommError(std::strerror(ECONNREFUSED));
  }
  set_connection_options(fd.get());
  return fd;
}

Descriptor connect_to_any(const std::vector<SocketAddress>& addresses, Deadline deadline,
                          const std::stop_token& stop) {
  std::string reason;
  for (std::size_t tried = 0; tried < addresses.size(); ++tried) {
    const auto share = deadline.left() / static_cast<std::int64_t>(addresses.size() - tried);
    try {
      return connect_socket(addresses[tried], Deadline::after(share), stop);
    } catch (const CommError& error) {
      reason = error.what();
    }
  }
  throw CommError(reason);
}

Descriptor accept_socket(int listening, int& error) {
  Descriptor fd(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  error = fd ? 0 : errno;
  if (fd) set_connection_options(fd.get());
  return fd;
}

std::string reason_of(int error) {
  const bool lacks_descriptors = error == EMFILE || error == ENFILE;
  return fmt::format("{}{}", std::strerror(error),
                     lacks_descriptors ? ": close some or raise the limit (ulimit -n)" : "");
}

void set_connection_options(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain == AF_UNIX) return;
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

SocketAddress local_end(int fd) {
  return name_by(::getsockname, fd);
}

SocketAddress remote_end(int fd) {
  return name_by(::getpeername, fd);
}

std::string describe_peer(int fd) {
  const SocketAddress name = remote_end(fd);
  if (name.length == 0) return "an unknown peer";
  if (name.family() == AF_UNIX) return "a process of this host";
  return Address{.host = host_of(name), .port = port_of(name), .unix_name = {}}.to_string();
}

bool peer_is_loopback(int fd) {
  const SocketAddress name = remote_end(fd);
  return name.family() != AF_UNIX && name.length > 0 &&
         is_loopback({.host = host_of(name), .port = 0, .unix_name = {}});
}

bool peer_shares_host(int fd) {
  const SocketAddress peer = remote_end(fd);
  if (peer.length == 0) return false;
  return peer.family() == AF_UNIX || host_of(peer) == host_of(local_end(fd));
}

}  // namespace lockstep::transport
