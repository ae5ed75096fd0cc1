// SPDX-License-Identifier: Apache-2.0
//
// Strangers at every port that we listen on: none of what they do lets them in, or keeps those out for whom
// the port is there. tests/transport/hostile_test.cpp looks at what the listener behind all of them counts.
#include "tests/fault/hostile_ports.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lockstep/base/error.h"
#include "lockstep/elastic/message_codec.h"
#include "lockstep/rendezvous/message.h"
#include "lockstep/transport/connect/wire.h"

#include "tests/support/strangers.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using transport::Descriptor;

// The most that a stranger hears: a hello and a verdict, never a proof.
constexpr std::size_t kRefusal = kHelloBytes + kVerdictBytes;

struct PortKind {
  const char* name;
  std::unique_ptr<AttackedPort> (*make)();
};

class HostilePorts : public testing::TestWithParam<PortKind> {
 protected:
  Descriptor stranger() const { return raw_connection(port_->address()); }
  Descriptor stranger_who_says(ConstBytes bytes) const {
    Descriptor socket = stranger();
    raw_send(socket, bytes);
    return socket;
  }

  const std::unique_ptr<AttackedPort> port_ = GetParam().make();
};

TEST_P(HostilePorts, Garbage) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    read_until_closed(stranger_who_says(garbage(random, 1 + random() % 5000)));
    read_until_closed(stranger_who_says(hello_with(garbage(random, kHelloBytes + kProofBytes))));
  }
  port_->expect_the_honest_are_served();
}

TEST_P(HostilePorts, MoreBytesThanAHandshakeHas) {
  for (const std::size_t bytes : {kHelloBytes, std::size_t{1} << 20}) {
    read_until_closed(stranger_who_says(hello_with(std::vector<std::byte>(bytes, std::byte{0xff}))));
  }
  port_->expect_the_honest_are_served();
}

TEST_P(HostilePorts, WrongSecrets) {
  transport::Credentials guessed = port_->welcome();
  for (const char* secret : {"what a stranger takes for the secret", "another guess of the same stranger"}) {
    guessed.secret = transport::Secret::from_value(secret);
    EXPECT_THROW(transport::dial(port_->address(), guessed, soon()), AuthenticationError);
  }
  port_->expect_the_honest_are_served();
}

TEST_P(HostilePorts, SilentHalfOpenAndSlowConnections) {
  const Descriptor silent = stranger();
  const Descriptor half_open = stranger();
  ::shutdown(half_open.get(), SHUT_WR);
  const Descriptor slow = stranger();
  const std::jthread trickle([&](const std::stop_token& stop) {
    const std::vector<std::byte> hello = hello_with(std::vector<std::byte>(kHelloBytes));
    for (std::size_t i = 0; i + 1 < hello.size() && !stop.stop_requested(); ++i) {
      raw_send(slow, ConstBytes(hello).subspan(i, 1));
      std::this_thread::sleep_for(100ms);
    }
  });
  port_->expect_the_honest_are_served();
  for (const Descriptor* one : {&silent, &half_open, &slow})
    EXPECT_LE(read_until_closed(*one).size(), kRefusal);
}

TEST_P(HostilePorts, TwoThousandConnections) {
  constexpr std::size_t kCrowd = 2000;
  allow_open_files(kCrowd + 1000);
  std::vector<Descriptor> crowd;
  for (std::size_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(i % 3 == 0 ? stranger_who_says(std::as_bytes(std::span("LOCK", 4))) : stranger());
  }
  port_->expect_the_honest_are_served();
}

TEST_P(HostilePorts, Resets) {
  const auto flood = [this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      try {
        const Descriptor socket = stranger();
        const linger reset{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
      } catch (const CommError&) {
        return;  // the port is closed: it has done what it was there for
      }
    }
  };
  const std::jthread flooding(flood);
  port_->expect_the_honest_are_served();
}

constexpr std::array kPlainPorts = {PortKind{"rendezvous", make_rendezvous_port},
                                    PortKind{"rank", make_rank_port}, PortKind{"shm", make_shm_port},
                                    PortKind{"coordinator", make_coordinator_port},
                                    PortKind{"bench", make_bench_port}};
constexpr PortKind kTlsPort{"tls", make_tls_port};

std::string port_name(const testing::TestParamInfo<PortKind>& kind) {
  return kind.param.name;
}

INSTANTIATE_TEST_SUITE_P(Ports, HostilePorts, testing::ValuesIn(kPlainPorts), port_name);
INSTANTIATE_TEST_SUITE_P(TlsPort, HostilePorts, testing::Values(kTlsPort), port_name);

// Through TLS nobody hears what is to be replayed.
class HostilePlainPorts : public HostilePorts {};

TEST_P(HostilePlainPorts, ReplayedHandshakes) {
  const std::vector<std::byte> captured = captured_handshake(port_->address(), port_->welcome());
  ASSERT_EQ(captured.size(), kHelloBytes + kProofBytes);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(read_until_closed(stranger_who_says(captured)).size(), kRefusal);
  }
  port_->expect_the_honest_are_served();
}

INSTANTIATE_TEST_SUITE_P(Ports, HostilePlainPorts, testing::ValuesIn(kPlainPorts), port_name);

class HostileTlsPort : public HostilePorts {
 protected:
  using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

  // Of a stranger who trusts anybody and has no certificate.
  static Context stranger_tls() { return {SSL_CTX_new(TLS_client_method()), SSL_CTX_free}; }

  // What the port has against it.
  std::string refusal_of(SSL_CTX* context) const {
    const Descriptor socket = stranger();
    ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context), SSL_free);
    SSL_set_fd(tls.get(), socket.get());
    ERR_clear_error();
    std::byte heard{};
    // The client of TLS 1.3 is through before the other side has seen its certificate.
    if (SSL_connect(tls.get()) == 1 && SSL_read(tls.get(), &heard, 1) > 0) return "it was let in";
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason == nullptr ? "none" : reason;
  }
};

TEST_P(HostileTlsPort, RefusesOldTls) {
  const Context old = stranger_tls();
  SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION);
  EXPECT_EQ(refusal_of(old.get()), "tlsv1 alert protocol version");
  port_->expect_the_honest_are_served();
}

TEST_P(HostileTlsPort, RefusesWhoeverHasNoCertificate) {
  EXPECT_EQ(refusal_of(stranger_tls().get()), "tlsv13 alert certificate required");
  port_->expect_the_honest_are_served();
}

TEST_P(HostileTlsPort, RefusesTheSecretWithoutTls) {
  transport::Credentials plain = port_->welcome();
  plain.tls = nullptr;
  EXPECT_THROW(transport::dial(port_->address(), plain, soon()), AuthenticationError);
  port_->expect_the_honest_are_served();
}

INSTANTIATE_TEST_SUITE_P(TlsPort, HostileTlsPort, testing::Values(kTlsPort), port_name);

// A message that those who know the secret may send to a port, in the form of
// transport/connect/message_bytes.h, and the most bytes that may follow its header.
struct MessageKind {
  PortKind port;
  std::vector<std::byte> (*encode)();
  std::size_t most;
};

std::vector<std::byte> arrival() {
  rendezvous::Arrival arrival;
  arrival.peer.rank = 1;
  return rendezvous::encode(arrival);
}

std::vector<std::byte> join() {
  return elastic::encode(elastic::FromMember(elastic::Join{}));
}

std::vector<std::byte> header_announcing(std::vector<std::byte> message, std::size_t bytes) {
  message.resize(transport::kMessageHeaderBytes);
  transport::WireWriter(std::span(message).last<4>()).put(static_cast<std::uint32_t>(bytes));
  return message;
}

class OversizedLengths : public testing::TestWithParam<MessageKind> {};

// What it announces does not follow: a port that made room for it, or waited for it, would not close.
TEST_P(OversizedLengths, AreRefusedByTheHeaderAlone) {
  const auto& [kind, encode, most] = GetParam();
  const std::unique_ptr<AttackedPort> port = kind.make();
  for (const std::size_t bytes : {most + 1, std::size_t{UINT32_MAX}}) {
    const auto member = transport::dial(port->address(), port->welcome(), soon()).connection;
    member->write_all(header_announcing(encode(), bytes), soon());
    std::array<std::byte, 1> answer;
    EXPECT_THROW(member->read_all(answer, soon()), PeerLost) << bytes;
  }
  port->expect_the_honest_are_served();
}

// Frames between ranks are in tests/transport/tcp_mesh_test.cpp.
INSTANTIATE_TEST_SUITE_P(
    Messages, OversizedLengths,
    testing::Values(MessageKind{.port = {"rendezvous", make_rendezvous_port},
                                .encode = arrival,
                                .most = rendezvous::max_body_bytes(rendezvous::MessageType::arrival, 3)},
                    MessageKind{.port = {"coordinator", make_coordinator_port},
                                .encode = join,
                                .most = elastic::max_body_bytes(elastic::MessageType::join,
                                                                elastic::Sender::member)}),
    [](const auto& kind) { return std::string(kind.param.port.name); });

}  // namespace
}  // namespace lockstep::test
