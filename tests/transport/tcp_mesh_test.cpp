// SPDX-License-Identifier: Apache-2.0
//
// How a world of TCP ranks comes together, and what a rank that breaks the rules does to the others.
#include <chrono>
#include <future>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/endpoint.h"
#include "lockstep/transport/tcp/frame.h"

#include "tests/support/credentials.h"
#include "tests/support/error_of.h"
#include "tests/transport/tcp_world.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
using tcp::FrameHeader;
using tcp::FrameType;
using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

const std::uint64_t kGeneration = test::credentials(0).me.generation;
constexpr Envelope kEnvelope{1, 1};

Deadline soon() {
  return Deadline::after(20s);
}

// Rank 0 of a world of two that waits for rank 1, which a test plays by hand.
class TcpRankZero : public testing::Test {
 protected:
  TcpOptions options(int world = 2) {
    return {.rank = 0,
            .world = world,
            .addresses = {},
            .listener = &listener_,
            .credentials = test::credentials(0),
            .streams_per_peer = 0};
  }

  std::unique_ptr<Connection> dial_as(Rank rank) {
    return dial(listener_.address(), test::credentials(rank), soon()).connection;
  }

  static void write_frame(Connection& connection, const FrameHeader& header, ConstBytes payload = {}) {
    connection.write_all(tcp::encode(header, kGeneration), soon());
    connection.write_all(payload, soon());
  }

  static FrameHeader bind(std::uint64_t link, std::uint64_t links, std::uint64_t world) {
    return {.type = FrameType::bind, .sequence = link, .total = links, .offset = world};
  }

  std::unique_ptr<Connection> connect_pair() {
    auto waiting = std::async(std::launch::async, [&] { return connect_tcp(options(), soon()); });
    auto connection = dial_as(1);
    write_frame(*connection, bind(0, 1, 2));
    endpoint_ = waiting.get();
    return connection;
  }

  Listener listener_{{.host = "127.0.0.1", .port = 0, .unix_name = {}}, test::credentials(0)};
  std::unique_ptr<Endpoint> endpoint_;
};

TEST_F(TcpRankZero, NamesTheRanksThatNeverCame) {
  const auto present = dial_as(2);
  write_frame(*present, bind(0, 1, 4));
  EXPECT_THAT(error_of<Timeout>([&] { connect_tcp(options(4), Deadline::after(300ms)); }),
              HasSubstr("rank 0 waited for ranks 1, 3 in vain"));
}

TEST_F(TcpRankZero, RefusesTwoProcessesOfOneRank) {
  const auto first = dial_as(1);
  const auto second = dial_as(1);
  write_frame(*first, bind(0, 1, 3));
  write_frame(*second, bind(0, 1, 3));
  EXPECT_THAT(error_of<CommError>([&] { connect_tcp(options(3), soon()); }),
              HasSubstr("two processes claim to be rank 1"));
}

TEST_F(TcpRankZero, RefusesARankOutsideTheWorldAndAnotherWorld) {
  const auto outside = dial_as(5);
  EXPECT_THAT(error_of<CommError>([&] { connect_tcp(options(), soon()); }), HasSubstr("rank 5 connected"));
  const auto other = dial_as(1);
  write_frame(*other, bind(0, 1, 8));
  EXPECT_THAT(error_of<CommError>([&] { connect_tcp(options(), soon()); }), HasSubstr("a world of 8"));
}

TEST_F(TcpRankZero, RefusesAConnectionThatDoesNotBeginWithABind) {
  const auto connection = dial_as(1);
  write_frame(*connection, {.type = FrameType::give_back});
  EXPECT_THAT(error_of<DataError>([&] { connect_tcp(options(), soon()); }), HasSubstr("begin with a bind"));
}

TEST_F(TcpRankZero, RefusesABindThatAnnouncesMoreThanThereMayBe) {
  const auto refusal = [this](const FrameHeader& header) {
    const auto connection = dial_as(1);
    write_frame(*connection, header);
    return error_of<DataError>([&] { connect_tcp(options(), soon()); });
  };
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  EXPECT_THAT(refusal(bind(kHuge - 1, kHuge, 2)), HasSubstr("number of links"));
  EXPECT_THAT(refusal(bind(0, 1, kHuge)), HasSubstr("world"));
  FrameHeader with_payload = bind(0, 1, 2);
  with_payload.length = UINT32_MAX;
  EXPECT_THAT(refusal(with_payload), HasSubstr("length"));
}

TEST_F(TcpRankZero, SurvivesAPeerThatLeavesBeforeItBinds) {
  dial_as(1).reset();
  connect_pair();
  EXPECT_EQ(endpoint_->world(), 2);
}

// For one that has proved itself and then says nothing more, a rank would wait for ten seconds.
TEST_F(TcpRankZero, AStopEndsTheWaitForABind) {
  const auto silent = dial_as(1);
  std::stop_source stop;
  TcpOptions stoppable = options();
  stoppable.stop = stop.get_token();
  auto joined = std::async(std::launch::async,
                           [&] { return error_of<Aborted>([&] { connect_tcp(stoppable, soon()); }); });
  std::this_thread::sleep_for(100ms);
  stop.request_stop();
  ASSERT_EQ(joined.wait_for(8s), std::future_status::ready);
  EXPECT_THAT(joined.get(), HasSubstr("given up"));
}

TEST_F(TcpRankZero, ChecksItsOptions) {
  const auto usage_error = [&](auto&& change) {
    TcpOptions changed = options();
    change(changed);
    return error_of<UsageError>([&] { connect_tcp(changed, soon()); });
  };
  EXPECT_THAT(usage_error([](TcpOptions& o) { o.rank = 2; }), HasSubstr("does not fit"));
  EXPECT_THAT(usage_error([](TcpOptions& o) { o.world = 0; }), HasSubstr("does not fit"));
  EXPECT_THAT(usage_error([](TcpOptions& o) { o.listener = nullptr; }), HasSubstr("needs a listener"));
  EXPECT_THAT(usage_error([](TcpOptions& o) { o.streams_per_peer = 17; }), HasSubstr("17 streams"));
  EXPECT_THAT(usage_error([](TcpOptions& o) { o.credentials.me.rank = 1; }), HasSubstr("credentials"));
  EXPECT_THAT(usage_error([](TcpOptions& o) { o.rank = o.credentials.me.rank = 1; }),
              HasSubstr("needs the addresses of 1 lower ranks"));
}

TEST_F(TcpRankZero, ADialerNoticesTheWrongAddress) {
  const TcpOptions second{.rank = 2,
                          .world = 3,
                          .addresses = {listener_.address(), listener_.address()},
                          .listener = nullptr,
                          .credentials = test::credentials(2),
                          .streams_per_peer = 1};
  EXPECT_THAT(error_of<UsageError>([&] { connect_tcp(second, soon()); }),
              HasSubstr("is the address of rank 0, not of rank 1"));
}

TEST_F(TcpRankZero, AFrameThatBreaksTheFormatClosesTheConnection) {
  const auto peer = connect_pair();
  const std::vector<std::byte> garbage(100, std::byte{0x55});
  peer->write_all(garbage, soon());
  Channel& channel = endpoint_->channel(1, 0);
  std::string found;
  const Deadline deadline = soon();
  while (found.empty() && !deadline.passed()) {
    const std::string error = error_of<DataError>([&] { channel.pump(); });
    if (error != "no such error") found = error;
  }
  EXPECT_THAT(found, AllOf(HasSubstr("rank 1 broke the protocol"), HasSubstr("magic")));
  EXPECT_FALSE(endpoint_->alive(1));
  EXPECT_THROW(endpoint_->channel(1, 9).pump(), DataError) << "all streams share the connection";
  std::byte rest{};
  EXPECT_THROW(peer->read_all(Bytes(&rest, 1), soon()), PeerLost);
}

TEST_F(TcpRankZero, AnOversizedLengthClosesTheConnectionBeforeThePayloadComes) {
  const auto peer = connect_pair();
  write_frame(*peer,
              {.type = FrameType::eager, .length = UINT32_MAX, .envelope = kEnvelope, .total = UINT32_MAX});
  const Deadline deadline = soon();
  while (endpoint_->alive(1) && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(error_of<DataError>([&] { endpoint_->channel(1, 0).pump(); }),
              HasSubstr("length is 4294967295"));
  std::byte rest{};
  EXPECT_THROW(peer->read_all(Bytes(&rest, 1), soon()), PeerLost);
}

TEST_F(TcpRankZero, AnUngrantedMessageClosesTheConnection) {
  const auto peer = connect_pair();
  write_frame(*peer, {.type = FrameType::data,
                      .stream = 0,
                      .length = tcp::kHeaderBytes,
                      .sequence = 0,
                      .envelope = kEnvelope,
                      .total = tcp::kHeaderBytes});
  const Deadline deadline = soon();
  while (endpoint_->alive(1) && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(error_of<DataError>([&] { endpoint_->channel(1, 0).pump(); }), HasSubstr("nobody asked"));
}

TEST_F(TcpRankZero, APeerThatDiesInTheMiddleOfAMessageIsGone) {
  auto peer = connect_pair();
  std::vector<std::byte> into(100'000);
  Channel& channel = endpoint_->channel(1, 0);
  channel.receive(kEnvelope, into);
  channel.pump();
  const std::vector<std::byte> half(50'000);
  write_frame(*peer, {.type = FrameType::data, .length = 100'000, .envelope = kEnvelope, .total = 100'000},
              half);
  peer.reset();
  const Deadline deadline = soon();
  while (endpoint_->alive(1) && !deadline.passed()) channel.pump();
  EXPECT_FALSE(endpoint_->alive(1));
  EXPECT_EQ(channel.receives_done(), 0u);
  EXPECT_EQ(channel.received_bytes(), 50'000u);
  EXPECT_FALSE(channel.pump()) << "a dead peer is no exception";
}

TEST_F(TcpRankZero, SendingToADeadPeerDoesNotThrow) {
  auto peer = connect_pair();
  peer.reset();
  const std::vector<std::byte> payload(1000);
  Channel& channel = endpoint_->channel(1, 0);
  const Deadline deadline = soon();
  for (int i = 0; i < 10; ++i) {
    channel.send(kEnvelope, payload);
    channel.pump();
    endpoint_->push_notice(1, 0);
    std::this_thread::sleep_for(1ms);
  }
  endpoint_->fail(0, "nobody is there");
  while (endpoint_->alive(1) && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(endpoint_->alive(1));
  channel.abandon();
}

// --- Two real endpoints.

TEST(TcpStreams, AStalledStreamHoldsUpNoOther) {
  const auto world = make_tcp_world(2, 1);
  Channel& stalled = world[0]->channel(1, 0);
  const std::vector<std::byte> large(8 << 20);
  const std::vector<std::byte> small(4096);
  stalled.send(kEnvelope, large);
  for (int i = 0; i < 1000; ++i) stalled.send(kEnvelope, small);  // nobody ever receives these

  Channel& sender = world[0]->channel(1, 1);
  Channel& receiver = world[1]->channel(0, 1);
  std::vector<std::byte> into(large.size());
  for (std::uint64_t i = 0; i < 5; ++i) {
    sender.send(kEnvelope, large);
    receiver.receive(kEnvelope, into);
    const Deadline deadline = soon();
    while (receiver.receives_done() == i && !deadline.passed()) {
      sender.pump();
      receiver.pump();
      stalled.pump();
    }
    ASSERT_EQ(receiver.receives_done(), i + 1);
  }
  EXPECT_EQ(stalled.sends_done(), 0u);
  stalled.abandon();
}

TEST(TcpStreams, WhatWasSentArrivesAfterTheSenderIsGone) {
  auto world = make_tcp_world(2, 3);
  Channel& sender = world[0]->channel(1, 0);
  Channel& receiver = world[1]->channel(0, 0);
  const std::vector<std::byte> sent(3 << 20, std::byte{9});
  std::vector<std::byte> into(sent.size());
  receiver.receive(kEnvelope, into);
  sender.send(kEnvelope, sent);
  std::jthread reader([&] {
    const Deadline deadline = soon();
    while (receiver.receives_done() == 0 && !deadline.passed()) {
      receiver.pump();
      std::this_thread::sleep_for(2ms);  // a slow reader, so that much is still under way
    }
  });
  const Deadline deadline = soon();
  while (sender.sends_done() == 0 && !deadline.passed()) sender.pump();
  ASSERT_EQ(sender.sends_done(), 1u);
  // Unread bytes at the sender must not turn its goodbye into a reset.
  world[0].reset();
  reader.join();
  EXPECT_EQ(receiver.receives_done(), 1u);
  EXPECT_EQ(into, sent);
  const Deadline later = soon();
  while (world[1]->alive(0) && !later.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(world[1]->alive(0));
}

TEST(TcpStreams, AbandonedPayloadMayBeFreedAtOnce) {
  const auto world = make_tcp_world(2, 1);
  Channel& sender = world[0]->channel(1, 0);
  Channel& receiver = world[1]->channel(0, 0);
  std::vector<std::byte> into(64 << 20);
  receiver.receive(kEnvelope, into);
  receiver.pump();
  auto payload = std::make_unique<std::vector<std::byte>>(into.size(), std::byte{7});
  sender.send(kEnvelope, *payload);
  // Until the socket is full: then a frame is half written.
  const Deadline deadline = soon();
  while (sender.sends_done() == 0 && !deadline.passed()) {
    if (!sender.pump()) break;
  }
  ASSERT_EQ(sender.sends_done(), 0u);
  sender.abandon();
  payload.reset();

  // The connection still carries other streams, in whole frames.
  const std::vector<std::byte> other(200'000, std::byte{5});
  std::vector<std::byte> other_into(other.size());
  world[0]->channel(1, 1).send(kEnvelope, other);
  world[1]->channel(0, 1).receive(kEnvelope, other_into);
  const Deadline later = soon();
  while (world[1]->channel(0, 1).receives_done() == 0 && !later.passed()) {
    world[0]->channel(1, 1).pump();
    world[1]->channel(0, 1).pump();
  }
  EXPECT_EQ(other_into, other);
  EXPECT_EQ(receiver.receives_done(), 0u);
  receiver.abandon();
}

}  // namespace
}  // namespace lockstep::transport
