// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/rendezvous.h"

#include <array>
#include <climits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/client.h"
#include "lockstep/transport/connect/socket.h"

#include "tests/rendezvous/meeting.h"
#include "tests/support/error_of.h"
#include "tests/support/random_draws.h"

namespace lockstep::rendezvous {
namespace {

using ::testing::HasSubstr;

TEST(Rendezvous, AllRanksGetTheSameTable) {
  for (int world : {2, 3, 7}) {
    Served served(world);
    std::vector<std::future<Outcome>> ranks;
    for (Rank rank = 0; rank < world; ++rank) {
      LocalInfo local{fmt::format("127.0.0.1:{}", 1000 + rank), "digest", nullptr};
      ranks.push_back(start_rank(placement_of(rank, world, served.address()), local));
    }
    const Outcome first = ranks[0].get();
    ASSERT_TRUE(first.table) << first.message();
    EXPECT_EQ(first.table->nonce.size(), 32u);
    for (Rank rank = 0; rank < world; ++rank) {
      EXPECT_EQ(first.table->peers[rank].tcp_address, fmt::format("127.0.0.1:{}", 1000 + rank));
      EXPECT_EQ(first.table->peers[rank].host_id, fmt::format("host{}", rank / 2));
      if (rank > 0) {
        EXPECT_EQ(ranks[rank].get().table, first.table);
      }
    }
    served.join();
  }
}

TEST(Rendezvous, AWorldOfOneUsesNoNetwork) {
  const Placement alone = placement_of(0, 1, {"192.0.2.1", 1, {}});
  const PeerTable one = rendezvous(alone, Secret(), {}, Deadline::after(seconds(0)));
  const PeerTable two = rendezvous(alone, Secret(), {}, Deadline::after(seconds(0)));
  EXPECT_EQ(one.world(), 1);
  EXPECT_NE(one.nonce, two.nonce);
}

TEST(Rendezvous, RankZeroServesWhenNoLauncherDoes) {
  // A port that was free a moment ago.
  const std::uint16_t port = Served(2).address().port;
  std::vector<std::future<Outcome>> ranks;
  for (Rank rank : {2, 1, 0}) {
    Placement placement = placement_of(rank, 3, {"127.0.0.1", port, {}});
    placement.served_by_rank0.value = true;
    ranks.push_back(start_rank(placement));
  }
  const Outcome first = ranks[0].get();
  ASSERT_TRUE(first.table) << first.message();
  EXPECT_EQ(ranks[1].get().table, first.table);
  EXPECT_EQ(ranks[2].get().table, first.table);
}

TEST(Rendezvous, RankZeroNamesAPortInUse) {
  const transport::Listener other({"127.0.0.1", 0, {}},
                                  {.me = {"other", -1, "other", 0}, .secret = kSecret, .tls = nullptr});
  Placement placement = placement_of(0, 2, other.address());
  placement.served_by_rank0.value = true;
  placement.master_port.source = "MASTER_PORT";
  const Outcome outcome = start_rank(placement).get();
  EXPECT_TRUE(outcome.is<UsageError>());
  EXPECT_THAT(outcome.message(),
              HasSubstr(fmt::format("port {} on 127.0.0.1 is in use", other.address().port)));
  EXPECT_THAT(outcome.message(), HasSubstr("port from MASTER_PORT"));
}

TEST(Rendezvous, OnlyWhoWouldServeTriesThePort) {
  const transport::Listener other({"127.0.0.1", 0, {}},
                                  {.me = {"other", -1, "other", 0}, .secret = kSecret, .tls = nullptr});
  Placement placement = placement_of(0, 2, other.address());
  EXPECT_NO_THROW(try_to_serve(placement)) << "a launcher serves";
  placement.served_by_rank0.value = true;
  EXPECT_EQ(test::error_of<UsageError>([&] { try_to_serve(placement); }),
            start_rank(placement).get().message());
  placement.rank.value = 1;
  EXPECT_NO_THROW(try_to_serve(placement));
  placement.rank.value = 0;
  placement.world.value = 1;
  EXPECT_NO_THROW(try_to_serve(placement));
}

TEST(Rendezvous, ASecondRankZeroOnTheSameHostIsNamed) {
  const std::uint16_t port = Served(2).address().port;
  Placement placement = placement_of(0, 2, {"127.0.0.1", port, {}});
  placement.served_by_rank0.value = true;
  auto one = start_rank(placement);
  auto two = start_rank(placement);
  for (auto* rank : {&one, &two}) {
    const Outcome outcome = rank->get();
    EXPECT_TRUE(outcome.is<UsageError>());
    EXPECT_THAT(outcome.message(), HasSubstr("two processes claim rank 0"));
  }
}

TEST(Rendezvous, WithoutASecretOnlyLoopbackIsServed) {
  Placement placement = placement_of(0, 2, {"192.0.2.1", 29'511, {}});
  placement.served_by_rank0.value = true;
  const Outcome outcome = start_rank(placement, {}, Secret()).get();
  EXPECT_TRUE(outcome.is<UsageError>());
  EXPECT_THAT(outcome.message(), HasSubstr("without a secret"));
}

TEST(Rendezvous, TwoProcessesWithOneRankEndItForAll) {
  Served served(4);
  std::vector<std::future<Outcome>> ranks;
  for (Rank rank : {0, 2, 2}) ranks.push_back(start_rank(placement_of(rank, 4, served.address())));
  for (auto& rank : ranks) {
    const Outcome outcome = rank.get();
    EXPECT_TRUE(outcome.is<UsageError>());
    EXPECT_THAT(outcome.message(), HasSubstr("two processes claim rank 2"));
  }
}

TEST(Rendezvous, ALatecomerLearnsWhyTheOthersFailed) {
  Served served(3, seconds(30), seconds(20));
  auto first = start_rank(placement_of(1, 3, served.address()));
  auto second = start_rank(placement_of(1, 3, served.address()));
  first.get();
  second.get();
  const Outcome late = start_rank(placement_of(0, 3, served.address())).get();
  EXPECT_TRUE(late.is<UsageError>());
  EXPECT_THAT(late.message(), HasSubstr("two processes claim rank 1"));
  start_rank(placement_of(2, 3, served.address())).get();
  served.join();
}

TEST(Rendezvous, AStopEndsTheWaitForLatecomers) {
  Served served(3, seconds(30), seconds(30));
  auto one = start_rank(placement_of(1, 3, served.address()));
  auto twin = start_rank(placement_of(1, 3, served.address()));
  EXPECT_TRUE(one.get().is<UsageError>());
  EXPECT_TRUE(twin.get().is<UsageError>());
  const Clock::time_point begin = Clock::now();
  served.stop();
  served.join();
  EXPECT_LT(Clock::now() - begin, seconds(10));
}

TEST(Rendezvous, DifferentWorldsAreNamed) {
  Served served(3);
  auto right = start_rank(placement_of(0, 3, served.address()));
  auto wrong = start_rank(placement_of(1, 5, served.address()));
  for (auto* rank : {&right, &wrong}) {
    const Outcome outcome = rank->get();
    EXPECT_TRUE(outcome.is<UsageError>());
    EXPECT_THAT(outcome.message(), HasSubstr("world of 5, but this run has 3 ranks"));
  }
}

TEST(Rendezvous, DifferentConfigurationsAreNamed) {
  Served served(3);
  auto one = start_rank(placement_of(0, 3, served.address()), {"", "aaa", nullptr});
  auto two = start_rank(placement_of(1, 3, served.address()), {"", "bbb", nullptr});
  for (auto* rank : {&one, &two}) {
    const std::string message = rank->get().message();
    EXPECT_THAT(message, HasSubstr("'aaa'"));
    EXPECT_THAT(message, HasSubstr("'bbb'"));
  }
}

TEST(Rendezvous, MissingRanksAreNamedToAllWhoWait) {
  Served served(6, seconds(1));
  auto one = start_rank(placement_of(1, 6, served.address()));
  auto four = start_rank(placement_of(4, 6, served.address()));
  for (auto* rank : {&one, &four}) {
    const Outcome outcome = rank->get();
    EXPECT_TRUE(outcome.is<Timeout>());
    EXPECT_THAT(outcome.message(), HasSubstr("4 of 6 ranks did not come"));
    EXPECT_THAT(outcome.message(), HasSubstr("missing: 0, 2, 3, 5"));
  }
}

TEST(Rendezvous, TheFirstRankToLosePatienceLearnsWhoIsMissing) {
  Served served(3);
  const Outcome outcome =
      start_rank(placement_of(1, 3, served.address()), {}, kSecret, milliseconds(1500)).get();
  EXPECT_TRUE(outcome.is<Timeout>());
  EXPECT_THAT(outcome.message(), HasSubstr("missing: 0, 2"));
}

TEST(Rendezvous, AServerThatFailsIsAnErrorOfRankZero) {
  const std::uint16_t port = Served(2).address().port;
  // Both ranks and the listener draw a nonce for each handshake; the server's own is the next.
  test::random_draws_left = 4;
  std::vector<std::future<Outcome>> ranks;
  for (Rank rank : {0, 1}) {
    Placement placement = placement_of(rank, 2, {"127.0.0.1", port, {}});
    placement.served_by_rank0.value = true;
    ranks.push_back(start_rank(placement));
  }
  const Outcome zero = ranks[0].get();
  const Outcome one = ranks[1].get();
  test::random_draws_left = INT_MAX;
  EXPECT_THAT(zero.message(), HasSubstr("the system gives no random bytes"));
  EXPECT_TRUE(one.is<PeerLost>()) << one.message();
}

TEST(Rendezvous, NobodyThere) {
  const std::uint16_t port = Served(2).address().port;
  const Outcome outcome =
      start_rank(placement_of(1, 2, {"127.0.0.1", port, {}}), {}, kSecret, milliseconds(300)).get();
  EXPECT_TRUE(outcome.is<Timeout>());
  EXPECT_THAT(outcome.message(), HasSubstr(fmt::format("rendezvous of rank 1 at 127.0.0.1:{}", port)));
}

TEST(Rendezvous, AWrongSecretIsRefusedAndTheOthersMeet) {
  Served served(2);
  const Outcome stranger =
      start_rank(placement_of(1, 2, served.address()), {}, Secret::from_value("some other secret")).get();
  EXPECT_TRUE(stranger.is<AuthenticationError>()) << stranger.message();
  auto zero = start_rank(placement_of(0, 2, served.address()));
  auto one = start_rank(placement_of(1, 2, served.address()));
  EXPECT_TRUE(zero.get().table);
  EXPECT_TRUE(one.get().table);
}

TEST(Rendezvous, AnotherRunOrGenerationIsRefused) {
  Served served(2);
  Placement other_run = placement_of(1, 2, served.address());
  other_run.run.value = "other";
  EXPECT_TRUE(start_rank(other_run).get().is<AuthenticationError>());
  Placement later = placement_of(1, 2, served.address());
  later.generation.value = 1;
  EXPECT_TRUE(start_rank(later).get().is<AuthenticationError>());
  served.stop();
}

TEST(Rendezvous, StoppingTheServerReleasesThoseWhoWait) {
  Served served(2);
  auto one = start_rank(placement_of(1, 2, served.address()));
  EXPECT_EQ(one.wait_for(milliseconds(100)), std::future_status::timeout);
  served.stop();
  // Aborted when it had arrived, PeerLost or Timeout when it was still on its way.
  EXPECT_TRUE(one.get().is<CommError>());
}

TEST(Rendezvous, AStopEndsTheWaitOfRankZeroAndOfTheOthers) {
  const std::uint16_t port = Served(2).address().port;
  std::array<std::stop_source, 2> stops;
  std::vector<std::future<Outcome>> ranks;
  for (Rank rank : {0, 1}) {
    Placement placement = placement_of(rank, 3, {"127.0.0.1", port, {}});
    placement.served_by_rank0.value = true;
    LocalInfo local;
    local.stop = stops[static_cast<std::size_t>(rank)].get_token();
    ranks.push_back(start_rank(placement, local, kSecret, std::chrono::hours(1)));
  }
  // Rank 2 never comes.
  EXPECT_EQ(ranks[1].wait_for(milliseconds(200)), std::future_status::timeout);
  for (const std::size_t rank : {1, 0}) {
    stops[rank].request_stop();
    const Outcome outcome = ranks[rank].get();
    EXPECT_TRUE(outcome.is<Aborted>()) << outcome.message();
    EXPECT_THAT(outcome.message(),
                HasSubstr(fmt::format("rendezvous of rank {} at 127.0.0.1:{}: ", rank, port)));
    EXPECT_THAT(outcome.message(), HasSubstr("was given up"));
  }
}

TEST(RouteAddress, IsWhatTheSettingSaysOrTheRouteGives) {
  Placement placement;
  EXPECT_EQ(route_address(placement, Deadline::after(seconds(5))), "127.0.0.1");
  placement.address.value = "10.9.8.7";
  EXPECT_EQ(route_address(placement, Deadline::after(seconds(5))), "10.9.8.7");
}

}  // namespace
}  // namespace lockstep::rendezvous
