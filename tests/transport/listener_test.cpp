// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/listener.h"

#include <atomic>
#include <chrono>
#include <future>
#include <stop_token>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <poll.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/socket.h"

#include "tests/support/credentials.h"
#include "tests/support/error_of.h"
#include "tests/transport/open_files.h"

namespace {

std::atomic<bool> listeners_lack_randomness{false};
thread_local bool is_listener = true;  // unless a test says otherwise

}  // namespace

// Takes the place of the library's, so that a listener can fail in the middle of its work.
extern "C" int RAND_bytes(unsigned char* buffer, int count) {
  if (is_listener && listeners_lack_randomness) return 0;
  return RAND_bytes_ex(nullptr, buffer, static_cast<std::size_t>(count), 0);
}

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
using test::credentials;
using test::error_of;
using testing::HasSubstr;

Address any_port() {
  return {.host = "127.0.0.1", .port = 0, .unix_name = {}};
}

Deadline soon() {
  return Deadline::after(20s);
}

void exchange_words(Connection& a, Connection& b) {
  const std::string word = "first frame";
  a.write_all(std::as_bytes(std::span(word)), soon());
  std::string received(word.size(), ' ');
  b.read_all(std::as_writable_bytes(std::span(received)), soon());
  EXPECT_EQ(received, word);
}

TEST(Listener, AnAddressIsTriedUnseen) {
  const std::uint16_t port = bound_address(open_bound_socket({"127.0.0.1", 0, {}}).get(), {}).port;
  const Descriptor trial = open_bound_socket({"127.0.0.1", port, {}});
  const Descriptor listening = open_listening_socket({"127.0.0.1", port, {}});
  EXPECT_THAT(test::error_of<UsageError>([&] {
                open_bound_socket({"127.0.0.1", port, {}});
              }),
              HasSubstr("is in use"));
}

TEST(Listener, ConnectsTwoThatShareTheSecret) {
  for (const Address& address : {any_port(), Address{"localhost", 0, ""},
                                 Address{"", 0, fmt::format("lockstep-listener-{}", getpid())}}) {
    Listener listener(address, credentials(0));
    auto dialer = dial(listener.address(), credentials(5), soon());
    auto accepted = listener.accept(soon());
    EXPECT_EQ(dialer.peer, credentials(0).me);
    EXPECT_EQ(accepted.peer, credentials(5).me);
    exchange_words(*dialer.connection, *accepted.connection);
    exchange_words(*accepted.connection, *dialer.connection);
    EXPECT_EQ(listener.counters().accepted, 1u);
    EXPECT_NE(::fcntl(dialer.connection->fd(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(accepted.connection->fd(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(Listener, DialerWaitsForTheListenerToAppear) {
  Address address;
  { address = Listener(any_port(), credentials(0)).address(); }
  auto dialing = std::async(std::launch::async, [&] { return dial(address, credentials(1), soon()); });
  std::this_thread::sleep_for(50ms);
  Listener listener(address, credentials(0));
  EXPECT_EQ(listener.accept(soon()).peer.rank, 1);
  EXPECT_EQ(dialing.get().peer.rank, 0);
}

TEST(Listener, TellsADialerWithTheWrongSecretAtOnce) {
  Listener listener(any_port(), credentials(0));
  for (const std::string secret : {"another secret 1", ""}) {
    EXPECT_THAT(error_of<AuthenticationError>([&] {
                  dial(listener.address(), credentials(1, {.secret = secret}), Deadline::after(60s));
                }),
                HasSubstr("refused our proof"));
  }
  EXPECT_EQ(listener.counters().refused, 2u);
  EXPECT_EQ(listener.counters().accepted, 0u);
}

TEST(Listener, TellsADialerOfAnotherRunAtOnce) {
  Listener listener(any_port(), credentials(0));
  Credentials other = credentials(1);
  other.me.generation = 9;
  EXPECT_THAT(error_of<AuthenticationError>([&] { dial(listener.address(), other, Deadline::after(60s)); }),
              HasSubstr("generation 1 of run 'test-run', we are of 9"));
}

TEST(Listener, SaysWhatIsInUse) {
  Listener first(any_port(), credentials(0));
  EXPECT_EQ(error_of<UsageError>([&] { Listener(first.address(), credentials(0)); }),
            fmt::format("port {} on 127.0.0.1 is in use by another process: choose another port or stop that "
                        "process",
                        first.address().port));
  const Address name{"", 0, fmt::format("lockstep-twice-{}", getpid())};
  Listener second(name, credentials(0));
  EXPECT_THAT(error_of<UsageError>([&] { Listener(name, credentials(0)); }), HasSubstr("is in use"));
}

TEST(Listener, SaysWhatIsNotOurs) {
  EXPECT_THAT(error_of<UsageError>([] {
                Listener({"192.0.2.1", 0, ""}, credentials(0));
              }),
              HasSubstr("not an address of this host"));
}

TEST(Listener, WillNotOpenToOthersWithoutSecretOrTls) {
  EXPECT_THAT(error_of<UsageError>([] {
                Listener({"0.0.0.0", 0, ""}, credentials(0, {.secret = ""}));
              }),
              HasSubstr("LOCKSTEP_SECRET_FILE"));
  EXPECT_THAT(error_of<UsageError>([] {
                dial({"192.0.2.1", 9, ""}, credentials(0, {.secret = ""}), soon());
              }),
              HasSubstr("LOCKSTEP_SECRET_FILE"));
  EXPECT_NO_THROW(Listener({"0.0.0.0", 0, ""}, credentials(0)));
  EXPECT_NO_THROW(Listener(any_port(), credentials(0, {.secret = ""})));
}

// Whoever is not admitted for a reason of ours is turned away like any other stranger.
TEST(Listener, GoesOnAfterAnErrorOfItsOwn) {
  is_listener = false;
  Listener listener(any_port(), credentials(0));
  listeners_lack_randomness = true;
  EXPECT_THAT(error_of<Timeout>([&] { dial(listener.address(), credentials(1), Deadline::after(100ms)); }),
              HasSubstr("could not connect"));
  listeners_lack_randomness = false;
  EXPECT_GE(listener.counters().refused, 1u);
  const auto dialer = dial(listener.address(), credentials(1), soon());
  EXPECT_EQ(listener.accept(soon()).peer.rank, 1);
}

TEST(Listener, SaysThatDescriptorsLack) {
  for (int left = 0; left < 8; ++left) {
    const test::OpenFilesLimit limit(left);
    try {
      const Listener listener(any_port(), credentials(0));
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("Too many open files: close some or raise the limit (ulimit -n)"));
      continue;
    }
    EXPECT_GE(left, 2) << "a listener takes at least a socket and an event queue";
    return;
  }
  ADD_FAILURE() << "8 descriptors do not suffice";
}

// For somebody who waits for other things too.
TEST(Listener, ItsDescriptorTellsWhetherSomebodyIsThere) {
  Listener listener(any_port(), credentials(0));
  const auto is_ready = [&](int timeout_ms) {
    pollfd entry{listener.fd(), POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
  };
  EXPECT_FALSE(is_ready(0));
  EXPECT_FALSE(listener.try_accept());
  const auto first = dial(listener.address(), credentials(1), soon());
  const auto second = dial(listener.address(), credentials(2), soon());
  for (const Rank rank : {1, 2}) {
    ASSERT_TRUE(is_ready(20'000));
    const auto accepted = listener.try_accept();
    ASSERT_TRUE(accepted);
    EXPECT_EQ(accepted->peer.rank, rank);
  }
  EXPECT_FALSE(is_ready(0));
  EXPECT_FALSE(listener.try_accept());
}

// Who proved itself is not let go without a word either.
TEST(Listener, CountsThoseThatProvedThemselvesAndFoundNoRoom) {
  Listener listener(any_port(), credentials(0), {.max_ready = 2});
  std::vector<AuthenticatedConnection> dialers;
  for (Rank rank = 1; rank <= 4; ++rank) {
    dialers.push_back(dial(listener.address(), credentials(rank), soon()));
  }
  std::byte nothing{};
  for (const std::size_t late : {2, 3}) {
    EXPECT_THROW(dialers[late].connection->read_all(Bytes(&nothing, 1), soon()), PeerLost);
  }
  EXPECT_EQ(listener.counters().accepted, 2u);
  EXPECT_EQ(listener.counters().overflowed, 2u);
  EXPECT_EQ(listener.accept(soon()).peer.rank, 1);
  EXPECT_EQ(listener.accept(soon()).peer.rank, 2);
  const auto next = dial(listener.address(), credentials(5), soon());
  EXPECT_EQ(listener.accept(soon()).peer.rank, 5);
}

TEST(Listener, WaitingAndDialingCanBeGivenUp) {
  std::stop_source stop;
  Listener listener(any_port(), credentials(0));
  auto waiting = std::async(std::launch::async, [&] { listener.accept(soon(), stop.get_token()); });
  Address nobody;
  { nobody = Listener(any_port(), credentials(0)).address(); }
  auto dialing =
      std::async(std::launch::async, [&] { dial(nobody, credentials(1), soon(), stop.get_token()); });
  std::this_thread::sleep_for(20ms);
  stop.request_stop();
  EXPECT_THAT(error_of<Aborted>([&] { waiting.get(); }), HasSubstr("was given up"));
  EXPECT_THAT(error_of<Aborted>([&] { dialing.get(); }), HasSubstr("was given up"));
}

TEST(Listener, AcceptGivesUpAtTheDeadline) {
  Listener listener(any_port(), credentials(0));
  EXPECT_THAT(error_of<Timeout>([&] { listener.accept(Deadline::after(20ms)); }),
              HasSubstr("nobody connected"));
}

TEST(Listener, DialGivesUpAtTheDeadlineWithTheLastReason) {
  Address address;
  { address = Listener(any_port(), credentials(0)).address(); }
  EXPECT_THAT(error_of<Timeout>([&] { dial(address, credentials(1), Deadline::after(50ms)); }),
              HasSubstr("Connection refused"));
}

TEST(Listener, DialingASilentOneCanBeGivenUp) {
  const Descriptor silent = open_listening_socket(any_port());
  std::stop_source stop;
  // Shorter than one try may take: it is the try that is given up.
  auto dialing = std::async(std::launch::async, [&] {
    dial(bound_address(silent.get(), any_port()), credentials(1), Deadline::after(5s), stop.get_token());
  });
  EXPECT_TRUE(wait_ready(silent.get(), Readiness::read, soon()));
  stop.request_stop();
  EXPECT_THAT(error_of<Aborted>([&] { dialing.get(); }), HasSubstr("was given up"));
}

TEST(Listener, OnAllInterfacesMeansBothFamilies) {
  if (!has_ipv6()) {
    EXPECT_THROW(Listener({"::", 0, ""}, credentials(0)), CommError);
    return;
  }
  Listener listener({"::", 0, ""}, credentials(0));
  const auto dialer = dial({"127.0.0.1", listener.address().port, ""}, credentials(1), Deadline::after(20s));
  const auto accepted = listener.accept(soon());
  EXPECT_THAT(describe_peer(accepted.connection->fd()), testing::StartsWith("127.0.0.1:"));
  EXPECT_TRUE(peer_is_loopback(accepted.connection->fd()));
  EXPECT_TRUE(peer_shares_host(accepted.connection->fd()));
}

// A port that swallows packets: nobody accepts, and the queue of those who wait is full.
class FullPort {
 public:
  FullPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress any = resolve(any_port(), soon()).front();
    EXPECT_EQ(::bind(socket_.get(), any.get(), any.length), 0);
    EXPECT_EQ(::listen(socket_.get(), 0), 0);
    while (true) {
      try {
        waiting_.push_back(connect_socket(address(), Deadline::after(100ms)));
      } catch (const CommError&) {
        return;
      }
    }
  }

  SocketAddress address() const { return local_end(socket_.get()); }

 private:
  Descriptor socket_;
  std::vector<Descriptor> waiting_;
};

TEST(ConnectToAny, AnAddressThatSwallowsPacketsLeavesTimeToTheNext) {
  const FullPort full;
  const Descriptor good = open_listening_socket(any_port());
  const Deadline deadline = Deadline::after(4s);
  const Descriptor connected = connect_to_any({full.address(), local_end(good.get())}, deadline);
  EXPECT_EQ(describe_peer(connected.get()), bound_address(good.get(), any_port()).to_string());
  EXPECT_FALSE(deadline.passed()) << "a handshake would have found no time left";
}

int option_of(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0);
  return value;
}

// With a user timeout the kernel would not count the probes.
TEST(Connection, AVanishedHostIsNoticedByTheNumberOfProbes) {
  Listener listener(any_port(), credentials(0));
  const auto dialer = dial(listener.address(), credentials(1), soon());
  const auto accepted = listener.accept(soon());
  for (const int fd : {dialer.connection->fd(), accepted.connection->fd()}) {
    EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
                  option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option_of(fd, IPPROTO_TCP, TCP_KEEPCNT),
              30);
    EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  }
}

TEST(Connection, ReadAndWriteAllEndAtTheDeadlineOrWithThePeer) {
  Listener listener(any_port(), credentials(0));
  auto dialer = dial(listener.address(), credentials(1), soon());
  auto accepted = listener.accept(soon());
  std::vector<std::byte> buffer(100);
  accepted.connection->write_all(Bytes(buffer).first(40), soon());
  EXPECT_THAT(error_of<Timeout>([&] { dialer.connection->read_all(buffer, Deadline::after(30ms)); }),
              HasSubstr("after 40 of 100 bytes"));
  std::vector<std::byte> huge(64 << 20);
  EXPECT_THROW(dialer.connection->write_all(huge, Deadline::after(30ms)), Timeout);
  accepted.connection.reset();
  EXPECT_THROW(dialer.connection->read_all(buffer, soon()), PeerLost);
  EXPECT_THROW(dialer.connection->write_all(huge, soon()), PeerLost);
}

}  // namespace
}  // namespace lockstep::transport
