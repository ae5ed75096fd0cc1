// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/table.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {

Arrival arrival_of(Rank rank, int world, std::string host = "node1", std::uint64_t pid = 10) {
  return {.peer = {.rank = rank,
                   .pid = pid,
                   .host_id = host + "-id",
                   .host_name = host,
                   .tcp_address = "10.0.0.1:7"},
          .world = world,
          .version = "1.0",
          .digest = "d",
          .patience_ms = 1000};
}

TEST(Roster, IsCompleteWhenEveryRankHasCome) {
  for (int world : {1, 2, 5}) {
    Roster roster(world);
    for (Rank rank = world - 1; rank >= 0; --rank) {
      EXPECT_FALSE(roster.complete());
      EXPECT_EQ(roster.add(arrival_of(rank, world)), std::nullopt);
    }
    ASSERT_TRUE(roster.complete());
    const PeerTable table = roster.table("abc");
    EXPECT_EQ(table.nonce, "abc");
    ASSERT_EQ(table.world(), world);
    for (Rank rank = 0; rank < world; ++rank) EXPECT_EQ(table.peers[rank].rank, rank);
  }
}

TEST(Roster, NamesBothProcessesThatClaimARank) {
  Roster roster(4);
  EXPECT_EQ(roster.add(arrival_of(2, 4, "hostA", 10)), std::nullopt);
  EXPECT_EQ(roster.add(arrival_of(2, 4, "hostB", 20)),
            "two processes claim rank 2: hostA pid 10 and hostB pid 20; give each process its own rank");
  EXPECT_EQ(roster.missing(), (std::vector<Rank>{0, 1, 3}));
}

TEST(Roster, RefusesAnotherWorldVersionOrConfiguration) {
  Roster roster(4);
  ASSERT_EQ(roster.add(arrival_of(0, 4)), std::nullopt);
  EXPECT_EQ(roster.add(arrival_of(1, 8)),
            "rank 1 (node1, pid 10) was started for a world of 8, but this run has 4 ranks: start all ranks "
            "with the same world size");
  Arrival other_version = arrival_of(1, 4);
  other_version.version = "2.0";
  EXPECT_EQ(roster.add(other_version),
            "rank 1 (node1, pid 10) runs lockstep 2.0, but rank 0 (node1, pid 10) runs 1.0: install the same "
            "version everywhere");
  Arrival other_digest = arrival_of(1, 4);
  other_digest.digest = "e";
  EXPECT_EQ(
      roster.add(other_digest),
      "rank 1 (node1, pid 10) has configuration digest 'e', but rank 0 (node1, pid 10) has 'd': give all "
      "ranks the same configuration");
  EXPECT_EQ(roster.missing(), (std::vector<Rank>{1, 2, 3}));
}

TEST(Roster, RefusesARankOutsideTheWorld) {
  Roster roster(4);
  EXPECT_EQ(roster.add(arrival_of(4, 4)), "rank 4 (node1, pid 10) is outside the world of 4");
}

TEST(Roster, ARankThatLeftMayComeAgain) {
  Roster roster(2);
  ASSERT_EQ(roster.add(arrival_of(1, 2)), std::nullopt);
  roster.remove(1);
  EXPECT_EQ(roster.missing(), (std::vector<Rank>{0, 1}));
  EXPECT_EQ(roster.add(arrival_of(1, 2, "node2", 11)), std::nullopt);
}

TEST(PeerTable, GroupsRanksByHostInOrderOfTheirLowestRank) {
  PeerTable table;
  for (const char* host : {"b", "a", "b", "c", "a"}) {
    Peer peer;
    peer.rank = table.world();
    peer.host_id = host;
    table.peers.push_back(peer);
  }
  EXPECT_EQ(hosts_of(table), (std::vector<std::vector<Rank>>{{0, 2}, {1, 4}, {3}}));
}

}  // namespace
}  // namespace lockstep::rendezvous
