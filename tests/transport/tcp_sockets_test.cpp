// SPDX-License-Identifier: Apache-2.0
//
// What the system says about the sockets of a world in this process.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/endpoint.h"

#include "tests/transport/tcp_world.h"

namespace lockstep::transport {
namespace {

constexpr Envelope kEnvelope{1, 1};
constexpr int kStreams = 3;

bool is_tcp_connection(int fd) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP)
    return false;
  sockaddr_storage peer{};
  size = sizeof peer;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

std::vector<int> tcp_connections() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    if (is_tcp_connection(fd)) found.push_back(fd);
  }
  return found;
}

std::uint64_t received_bytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return info.tcpi_bytes_received;
}

class TcpSockets : public testing::Test {
 protected:
  const std::vector<int> before_ = tcp_connections();
  const std::vector<std::unique_ptr<Endpoint>> world_ = make_tcp_world(2, kStreams);

  // Both ends of all connections of the world.
  std::vector<int> sockets() const {
    std::vector<int> all = tcp_connections();
    std::erase_if(all, [&](int fd) { return std::ranges::find(before_, fd) != before_.end(); });
    return all;
  }
};

TEST_F(TcpSockets, DoNotHoldBackSmallMessages) {
  ASSERT_EQ(sockets().size(), 2U * kStreams);
  for (const int fd : sockets()) {
    int no_delay = 0;
    socklen_t size = sizeof no_delay;
    ASSERT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
    EXPECT_NE(no_delay, 0);
  }
}

TEST_F(TcpSockets, ALargeMessageUsesThemAll) {
  const std::vector<std::byte> sent(16 << 20, std::byte{7});
  std::vector<std::byte> into(sent.size());
  const std::vector<int> all = sockets();
  ASSERT_EQ(all.size(), 2U * kStreams);
  std::vector<std::uint64_t> carried;
  for (const int fd : all) carried.push_back(received_bytes(fd));

  Channel& sender = world_[0]->channel(1, 0);
  Channel& receiver = world_[1]->channel(0, 0);
  receiver.receive(kEnvelope, into);
  sender.send(kEnvelope, sent);
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (receiver.receives_done() == 0 && !deadline.passed()) {
    sender.pump();
    receiver.pump();
  }
  ASSERT_EQ(into, sent);

  for (std::size_t i = 0; i < all.size(); ++i) carried[i] = received_bytes(all[i]) - carried[i];
  // The ends of the receiver have all of it, those of the sender what was answered.
  std::ranges::sort(carried, std::greater());
  carried.resize(kStreams);
  EXPECT_GE(std::accumulate(carried.begin(), carried.end(), std::uint64_t{0}), sent.size());
  EXPECT_GE(carried.back(), sent.size() / 3 / kStreams) << testing::PrintToString(carried);
}

}  // namespace
}  // namespace lockstep::transport
