// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/message.h"
#include "lockstep/transport/connect/socket.h"

#include "tests/rendezvous/meeting.h"
#include "tests/support/refusals.h"

namespace lockstep::rendezvous {
namespace {

using ::testing::HasSubstr;

// --- Clients that know the secret but do not keep to the protocol.

Arrival arrival_of(Rank rank, int world) {
  Arrival arrival;
  arrival.peer.rank = rank;
  arrival.world = world;
  arrival.version = std::string(version());
  arrival.patience_ms = 60'000;
  return arrival;
}

void expect_two_ranks_meet(const Address& server) {
  auto zero = start_rank(placement_of(0, 2, server));
  auto one = start_rank(placement_of(1, 2, server));
  const Outcome outcome = zero.get();
  EXPECT_TRUE(outcome.table) << outcome.message();
  EXPECT_TRUE(one.get().table);
}

TEST(RendezvousServer, GarbageDropsOnlyItsSender) {
  Served served(2);
  auto garbage = dial_as(1, served.address());
  garbage.connection->write_all(std::vector<std::byte>(100, std::byte{'x'}), Deadline::after(seconds(5)));
  std::vector<std::byte> answer(1);
  EXPECT_THROW(garbage.connection->read_all(answer, Deadline::after(seconds(10))), PeerLost);
  expect_two_ranks_meet(served.address());
}

TEST(RendezvousServer, ManyRefusalsAreFewLines) {
  Served served(2);
  test::expect_few_refusals_logged("dropped a connection", [&served] {
    for (int i = 0; i < 100; ++i) {
      auto garbage = dial_as(1, served.address());
      garbage.connection->write_all(std::vector<std::byte>(100, std::byte{'x'}), Deadline::after(seconds(5)));
      std::vector<std::byte> answer(1);
      EXPECT_THROW(garbage.connection->read_all(answer, Deadline::after(seconds(10))), PeerLost);
    }
  });
}

TEST(RendezvousServer, SilenceHoldsUpNobody) {
  Served served(2);
  auto silent = dial_as(1, served.address());
  auto half = dial_as(0, served.address());
  const auto message = encode(arrival_of(0, 2));
  half.connection->write_all(ConstBytes(message).first(20), Deadline::after(seconds(5)));
  expect_two_ranks_meet(served.address());
}

TEST(RendezvousServer, ARankThatDiesWhileItWaitsMayComeAgain) {
  Served served(2);
  {
    auto dead = dial_as(1, served.address());
    dead.connection->write_all(encode(arrival_of(1, 2)), Deadline::after(seconds(5)));
  }
  expect_two_ranks_meet(served.address());
}

TEST(RendezvousServer, ClaimingAnotherRankThanProvedIsRefused) {
  Served served(2);
  auto liar = dial_as(1, served.address());
  liar.connection->write_all(encode(arrival_of(0, 2)), Deadline::after(seconds(5)));
  std::vector<std::byte> answer(1);
  EXPECT_THROW(liar.connection->read_all(answer, Deadline::after(seconds(10))), PeerLost);
  expect_two_ranks_meet(served.address());
}

TEST(RendezvousServer, AnotherProtocolVersionIsNamedToAll) {
  Served served(2);
  auto zero = start_rank(placement_of(0, 2, served.address()));
  auto newer = dial_as(1, served.address());
  auto message = encode(arrival_of(1, 2));
  message[4] = std::byte{9};
  newer.connection->write_all(message, Deadline::after(seconds(5)));
  const Outcome outcome = zero.get();
  EXPECT_TRUE(outcome.is<UsageError>());
  EXPECT_THAT(outcome.message(), HasSubstr("rank 1 speaks version 9 of the rendezvous protocol"));
}

TEST(ListeningAddress, IsOfTheFamiliesThatTheMastersNameMayStandFor) {
  const std::string both = transport::has_ipv6() ? "::" : "0.0.0.0";
  const auto host = [](const char* master) { return listening_address({master, 7, {}}).host; };
  EXPECT_EQ(host("node7"), both);
  EXPECT_EQ(host("10.0.0.1"), "0.0.0.0");
  EXPECT_EQ(host("fe80::1"), both);
  EXPECT_EQ(host("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(host("localhost"), "localhost");
  EXPECT_EQ(listening_address({"node7", 7, {}}).port, 7);
}

TEST(ListeningAddress, OfANameIsReachedThroughIPv4) {
  const Server server({.listen = listening_address({"node7", 0, {}}),
                       .world = 2,
                       .run = "test",
                       .generation = 0,
                       .secret = kSecret,
                       .tls = nullptr});
  EXPECT_NO_THROW(dial_as(1, {"127.0.0.1", server.address().port, {}}));
}

}  // namespace
}  // namespace lockstep::rendezvous
