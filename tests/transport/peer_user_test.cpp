// SPDX-License-Identifier: Apache-2.0
//
// Without a secret, other users of the host are strangers. The other user is a child process that gives up
// being root, made by fork before the test has any threads.
#include "lockstep/transport/connect/peer_user.h"

#include <array>
#include <chrono>
#include <functional>
#include <sstream>
#include <string>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/handshake.h"
#include "lockstep/transport/connect/listener.h"

#include "tests/support/credentials.h"
#include "tests/support/error_of.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
using test::credentials;
using test::error_of;
using testing::HasSubstr;

constexpr uid_t kNobody = 65'534;
const Address kAnyPort{.host = "127.0.0.1", .port = 0, .unix_name = {}};

Deadline soon() {
  return Deadline::after(20s);
}

Credentials no_secret(Rank rank) {
  return credentials(rank, {.secret = ""});
}

// One end of a pair of sockets: the test's, or the child's.
class Line {
 public:
  explicit Line(Descriptor end) : end_(std::move(end)) {}

  void tell(std::uint16_t number) const {
    ASSERT_EQ(::write(end_.get(), &number, sizeof(number)), static_cast<ssize_t>(sizeof(number)));
  }
  // 0 when the other side has let go.
  std::uint16_t hear() const {
    std::uint16_t number = 0;
    return ::read(end_.get(), &number, sizeof(number)) == sizeof(number) ? number : 0;
  }

 private:
  Descriptor end_;
};

// A process of another user, that ends by itself or when the test lets go of its line.
class OtherUser {
 public:
  explicit OtherUser(const std::function<void(const Line&)>& body) : line_(start(body)) {}
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  ~OtherUser() {
    line_ = Line(Descriptor());
    ::waitpid(pid_, nullptr, 0);
  }

  const Line& line() const { return line_; }

 private:
  Line start(const std::function<void(const Line&)>& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
    Descriptor ours(ends[0]);
    Descriptor theirs(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return Line(std::move(ours));
    ::close(ours.get());
    if (::setgid(kNobody) == 0 && ::setuid(kNobody) == 0) body(Line(std::move(theirs)));
    ::_exit(0);
  }

  pid_t pid_ = -1;
  Line line_;
};

// As one would who does not mind who is at the other end.
void prove(const Descriptor& socket, Side side, Rank rank) {
  Handshake handshake(side, no_secret(rank).me, Secret(), random_nonce());
  std::array<std::byte, Handshake::kMaxBytes> buffer;
  while (true) {
    const auto output = handshake.take_output();
    if (!output.empty()) ::send(socket.get(), output.data(), output.size(), MSG_NOSIGNAL);
    if (handshake.done() || !wait_ready(socket.get(), Readiness::read, soon())) return;
    const ssize_t got = ::recv(socket.get(), buffer.data(), handshake.wanted(), 0);
    if (got <= 0) return;
    handshake.feed(ConstBytes(buffer).first(static_cast<std::size_t>(got)));
  }
}

Descriptor connect_to(std::uint16_t port) {
  const Address address{.host = "127.0.0.1", .port = port, .unix_name = {}};
  return connect_socket(resolve(address, soon()).front(), soon());
}

void wait_for_refusals(const Listener& listener, std::uint64_t count) {
  for (const Deadline limit = soon(); listener.counters().refused < count && !limit.passed();) ::usleep(1000);
  EXPECT_EQ(listener.counters().refused, count);
}

TEST(PeerUser, AnotherUserIsNotLetInWithoutASecret) {
  ASSERT_EQ(::geteuid(), 0u) << "only root can be another user";
  const OtherUser stranger([](const Line& line) {
    const std::uint16_t port = line.hear();
    const Descriptor socket = connect_to(port);
    prove(socket, Side::dialer, 1);
    // Nobody's any more, which must not make it root's.
    {
      const Descriptor closed = connect_to(port);
      prove(closed, Side::dialer, 1);
    }
    line.hear();  // the end of the test
  });
  Listener listener(kAnyPort, no_secret(0));
  testing::internal::CaptureStderr();
  stranger.line().tell(listener.address().port);
  wait_for_refusals(listener, 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("it runs as user 65534, and without a secret only processes of user 0 are trusted"));
  EXPECT_EQ(listener.counters().accepted, 0u);

  const auto dialer = dial(listener.address(), no_secret(1), soon());
  EXPECT_EQ(listener.accept(soon()).peer.rank, 1);
  EXPECT_EQ(listener.counters().accepted, 1u);
}

TEST(PeerUser, AnotherUserIsLetInWithTheSecret) {
  const OtherUser peer([](const Line& line) {
    const Address address{.host = "127.0.0.1", .port = line.hear(), .unix_name = {}};
    const auto dialer = dial(address, credentials(1), soon());
    line.hear();  // the end of the test
  });
  Listener listener(kAnyPort, credentials(0));
  peer.line().tell(listener.address().port);
  EXPECT_EQ(listener.accept(soon()).peer.rank, 1);
}

TEST(PeerUser, AnotherUsersPortIsNotTrustedWithoutASecret) {
  const OtherUser stranger([](const Line& line) {
    const Descriptor listening = open_listening_socket(kAnyPort);
    line.tell(bound_address(listening.get(), kAnyPort).port);
    wait_ready(listening.get(), Readiness::read, soon());
    int error = 0;
    const Descriptor socket = accept_socket(listening.get(), error);
    prove(socket, Side::listener, 0);
    line.hear();  // the end of the test
  });
  const Address address{.host = "127.0.0.1", .port = stranger.line().hear(), .unix_name = {}};
  EXPECT_THAT(error_of<AuthenticationError>([&] { dial(address, no_secret(1), soon()); }),
              HasSubstr("it runs as user 65534"));
}

SocketAddress end_of(int family, const char* host, std::uint16_t port) {
  SocketAddress end;
  end.storage.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(end.storage);
    ::inet_pton(family, host, &v6.sin6_addr);
    v6.sin6_port = htons(port);
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(end.storage);
    ::inet_pton(family, host, &v4.sin_addr);
    v4.sin_port = htons(port);
  }
  return end;
}

TEST(PeerUser, IsFoundInTheTableOfSockets) {
  const std::string rows =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 11 1 0 "
      "100\n"
      "   1: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20\n"
      "   2: 0100007F:0050 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  2000        0 0 1 0 20\n";
  const SocketAddress web = end_of(AF_INET, "127.0.0.1", 80);
  const SocketAddress other = end_of(AF_INET, "127.0.0.1", 8080);
  const auto look = [&](const SocketAddress& local, const SocketAddress& remote) {
    std::istringstream table(rows);
    return holder_in_table(table, local, remote);
  };
  EXPECT_EQ(look(other, web), 1000u);
  EXPECT_EQ(look(web, other), std::nullopt) << "without an inode nobody holds it";
  EXPECT_EQ(look(other, other), std::nullopt);

  std::istringstream table6(
      "   0: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:0050 01 "
      "00000000:00000000 00:00000000 00000000  1001        0 12 1 0 20\n");
  EXPECT_EQ(holder_in_table(table6, end_of(AF_INET6, "::1", 8080), end_of(AF_INET6, "::1", 80)), 1001u);
}

}  // namespace
}  // namespace lockstep::transport
