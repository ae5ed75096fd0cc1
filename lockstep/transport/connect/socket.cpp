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
#include <sys/un.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

constexpr int kBacklog = 1024;
constexpr std::chrono::seconds kListenLookup{10};

// A vanished host is noticed by keepalive when the connection is idle, by the user timeout when it is not.
constexpr int kKeepAliveIdleSeconds = 10;
constexpr int kKeepAliveIntervalSeconds = 5;
constexpr int kKeepAliveProbes = 4;
constexpr int kUnacknowledgedLimitMs = 120'000;

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

std::string host_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* binary =
      address.family() == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr);
  return ::inet_ntop(address.family(), binary, text.data(), text.size()) == nullptr ? "?" : text.data();
}

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

bool wait_ready(int fd, Readiness readiness, Deadline deadline) {
  const short events = readiness == Readiness::read ? POLLIN : POLLOUT;
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    const int limit_ms = static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
    const int ready = ::poll(&entry, 1, limit_ms);
    if (ready > 0) return true;
    if (deadline.passed()) return false;
  }
}

Descriptor open_listening_socket(const Address& address) {
  const SocketAddress where = resolve_for_listening(address);
  Descriptor fd = open_socket(where.family());
  if (!address.is_unix()) set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), where.get(), where.length) != 0) throw_listen_error(address, errno);
  if (::listen(fd.get(), kBacklog) != 0) throw_listen_error(address, errno);
  return fd;
}

Address bound_address(int fd, const Address& asked) {
  if (asked.is_unix()) return asked;
  Address bound = asked;
  bound.port = port_of(name_by(::getsockname, fd));
  return bound;
}

Descriptor connect_socket(const SocketAddress& to, Deadline deadline) {
  Descriptor fd = open_socket(to.family());
  if (::connect(fd.get(), to.get(), to.length) != 0) {
    if (errno != EINPROGRESS) throw CommError(std::strerror(errno));
    if (!wait_ready(fd.get(), Readiness::write, deadline)) throw CommError("no answer");
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) throw CommError(std::strerror(error));
  }
  // A port of the range the system hands out can be given to this very socket, which then meets itself.
  if (to.family() != AF_UNIX && same(name_by(::getsockname, fd.get()), name_by(::getpeername, fd.get()))) {
    throw CommError(std::strerror(ECONNREFUSED));
  }
  set_connection_options(fd.get());
  return fd;
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
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedLimitMs);
}

std::string describe_peer(int fd) {
  const SocketAddress name = name_by(::getpeername, fd);
  if (name.length == 0) return "an unknown peer";
  if (name.family() == AF_UNIX) return "a process of this host";
  return Address{.host = host_of(name), .port = port_of(name), .unix_name = {}}.to_string();
}

bool peer_is_loopback(int fd) {
  const SocketAddress name = name_by(::getpeername, fd);
  return name.family() != AF_UNIX && name.length > 0 &&
         is_loopback({.host = host_of(name), .port = 0, .unix_name = {}});
}

bool peer_shares_host(int fd) {
  const SocketAddress peer = name_by(::getpeername, fd);
  if (peer.length == 0) return false;
  return peer.family() == AF_UNIX || host_of(peer) == host_of(name_by(::getsockname, fd));
}

bool peer_is_our_user(int fd) {
  if (name_by(::getsockname, fd).family() != AF_UNIX) return true;
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace lockstep::transport
