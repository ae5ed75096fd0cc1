// SPDX-License-Identifier: Apache-2.0
#include "tests/support/strangers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::test {
namespace {

using transport::Address;
using transport::Descriptor;
using transport::Readiness;

constexpr std::string_view kMagic = "LOCKSTEP";

std::vector<std::byte> forward(const Descriptor& from, const Descriptor& to, std::size_t bytes) {
  std::vector<std::byte> moved;
  std::vector<std::byte> buffer(bytes);
  while (moved.size() < bytes && transport::wait_ready(from.get(), Readiness::read, soon())) {
    const ssize_t got = ::recv(from.get(), buffer.data(), bytes - moved.size(), 0);
    if (got <= 0) break;
    moved.insert(moved.end(), buffer.begin(), buffer.begin() + got);
  }
  raw_send(to, moved);
  return moved;
}

}  // namespace

Descriptor raw_connection(const Address& to) {
  const transport::SocketAddress where = transport::resolve(to, soon()).front();
  for (const Deadline deadline = soon();; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    try {
      return transport::connect_socket(where, deadline);
    } catch (const CommError& error) {
      // A Unix socket with a full queue says so at once, where a TCP port lets us wait.
      if (deadline.passed() || error.what() != std::string_view(std::strerror(EAGAIN))) throw;
    }
  }
}

void raw_send(const Descriptor& socket, ConstBytes bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::vector<std::byte> garbage(std::mt19937& random, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  made[0] = std::byte{'x'};
  return made;
}

std::vector<std::byte> hello_with(std::vector<std::byte> rest) {
  std::ranges::copy(std::as_bytes(std::span(kMagic)), rest.begin());
  return rest;
}

std::vector<std::byte> read_until_closed(const Descriptor& socket) {
  std::vector<std::byte> said;
  std::vector<std::byte> buffer(1024);
  const Deadline deadline = soon();
  while (transport::wait_ready(socket.get(), Readiness::read, deadline)) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return said;
    said.insert(said.end(), buffer.begin(), buffer.begin() + got);
  }
  ADD_FAILURE() << "the port keeps a stranger's connection";
  return said;
}

std::vector<std::byte> captured_handshake(const Address& port, const transport::Credentials& honest) {
  const Address anywhere{.host = "127.0.0.1", .port = 0, .unix_name = {}};
  const Descriptor trap = transport::open_listening_socket(anywhere);
  const Address trap_address = transport::bound_address(trap.get(), anywhere);
  std::jthread dialer([&] { transport::dial(trap_address, honest, soon()); });
  EXPECT_TRUE(transport::wait_ready(trap.get(), Readiness::read, soon()));
  int error = 0;
  const Descriptor from_dialer = transport::accept_socket(trap.get(), error);
  const Descriptor to_port = raw_connection(port);
  std::vector<std::byte> captured = forward(from_dialer, to_port, kHelloBytes);
  forward(to_port, from_dialer, kHelloBytes);
  const std::vector<std::byte> proof = forward(from_dialer, to_port, kProofBytes);
  captured.insert(captured.end(), proof.begin(), proof.end());
  forward(to_port, from_dialer, kVerdictBytes + kProofBytes);
  return captured;
}

void allow_open_files(std::size_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_GT(limit.rlim_cur, count) << "this test needs a higher hard limit of open files";
}

}  // namespace lockstep::test
