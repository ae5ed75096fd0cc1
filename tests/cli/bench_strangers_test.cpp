// SPDX-License-Identifier: Apache-2.0
//
// Where the ranks of a benchmark meet, somebody else may come first.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/line.h"
#include "lockstep/cli/bench/neighbours.h"
#include "lockstep/rendezvous/signal_inbox.h"

#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/strangers.h"

namespace lockstep::cli {
namespace {

using testing::HasSubstr;
using transport::Descriptor;

TEST(BenchNeighbours, KnowEachOtherFromStrangers) {
  test::run_ranks(3, [](const comm::Communicator& world) {
    const transport::Credentials credentials = ring_credentials(world);
    transport::Listener door = ring_door(credentials);
    EXPECT_TRUE(transport::is_loopback(door.address()));
    const Descriptor silent = test::raw_connection(door.address());
    const Descriptor talker = test::raw_connection(door.address());
    test::raw_send(talker, std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n", 18)));
    const Neighbours neighbours = join_neighbours(world, credentials, door);
    const auto mine = static_cast<std::byte>(world.rank());
    std::byte theirs{};
    neighbours.next->write_all(ConstBytes(&mine, 1), test::soon());
    neighbours.previous->read_all(Bytes(&theirs, 1), test::soon());
    EXPECT_EQ(static_cast<Rank>(theirs), (world.rank() + 2) % 3);
  });
}

class WaitingCrew : public Crew {
 public:
  explicit WaitingCrew(rendezvous::SignalInbox& signals) : Crew(2, "lockstep", signals) {}

  using Crew::address;
  void gather() {
    Crew::gather([] {}, test::soon());
  }
};

class BenchAgents : public testing::Test {
 protected:
  LineSocket caller() const { return LineSocket::connect(crew_.address(), "the crew"); }

  rendezvous::SignalInbox signals_{SIGUSR2};
  WaitingCrew crew_{signals_};
};

TEST_F(BenchAgents, CallInWhereOnlyThisUserCan) {
  const std::filesystem::path folder = crew_.address().parent_path();
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(BenchAgents, AreNotTakenForSomebodyElse) {
  LineSocket stranger = caller();
  stranger.send("GET / HTTP/1.1", test::soon());
  EXPECT_THAT(test::error_of<DataError>([&] { crew_.gather(); }), HasSubstr("expected hello"));
}

TEST_F(BenchAgents, ThatComeTwiceAreNamed) {
  LineSocket one = caller();
  LineSocket other = caller();
  for (LineSocket* agent : {&one, &other}) agent->send(format_hello(1), test::soon());
  EXPECT_THAT(test::error_of<DataError>([&] { crew_.gather(); }),
              HasSubstr("an agent of lockstep says that it is rank 1 of 2"));
}

TEST_F(BenchAgents, ThatSayNoEndAreRefused) {
  LineSocket stranger = caller();
  stranger.send(std::string(2 * kMaxBenchLine, 'x'), test::soon());
  EXPECT_THAT(test::error_of<DataError>([&] { crew_.gather(); }), HasSubstr("sent a line over"));
}

}  // namespace
}  // namespace lockstep::cli
