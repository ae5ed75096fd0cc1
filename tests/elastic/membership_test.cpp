// SPDX-License-Identifier: Apache-2.0
//
// Workers and coordinator over loopback, in threads of one process.
#include "lockstep/elastic/membership.h"

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/elastic/agent_link.h"
#include "lockstep/elastic/coordinator_server.h"
#include "lockstep/elastic/message_codec.h"

#include "tests/checkpoint/test_disks.h"
#include "tests/elastic/served_coordinator.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/scoped_variable.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Full for as long as it is said to be.
class FullDisk : public checkpoint::testing::HastyDisk {
 public:
  std::atomic<bool> is_full = true;
  std::atomic<int> failures = 0;

 protected:
  void write(File& file, ConstBytes bytes) override {
    if (!is_full) return HastyDisk::write(file, bytes);
    ++failures;
    throw UsageError("cannot write the log: no room");
  }
};

class Members : public testing::Test {
 protected:
  static transport::Credentials credentials(const std::string& run = "run") {
    return {.me = {.role = "elastic", .rank = -1, .run = run, .generation = 0}, .secret = {}, .tls = nullptr};
  }

  CoordinatorServer::Options options(int members, std::uint16_t port = 0) const {
    CoordinatorOptions coordinator;
    coordinator.expected = members;
    coordinator.max_members = members;
    return {.listen = {"127.0.0.1", port, {}},
            .credentials = credentials(),
            .coordinator = coordinator,
            .log_path = folder_.path("decisions")};
  }

  void serve(int members) { server_ = std::make_unique<ServedCoordinator>(options(members)); }
  void serve_on(Disk& disk, int members, Time stall_timeout, Time join_timeout) {
    CoordinatorServer::Options on_disk = options(members);
    on_disk.disk = &disk;
    on_disk.coordinator.stall_timeout = stall_timeout;
    on_disk.coordinator.join_timeout = join_timeout;
    server_ = std::make_unique<ServedCoordinator>(on_disk);
  }

  std::unique_ptr<Membership> member() const {
    Membership::Options options;
    options.coordinator = server_->address();
    options.credentials = credentials();
    options.host = "here";
    options.beat_interval = 20ms;
    options.reconnect_timeout = 10s;
    return std::make_unique<Membership>(options);
  }

  // All of them at once; by member.
  static std::vector<Place> take_places(const std::vector<Membership*>& members, const Held& held) {
    std::vector<std::future<Place>> waiting;
    for (Membership* member : members) {
      waiting.push_back(std::async(std::launch::async, [=] { return member->take_place(held, "test"); }));
    }
    std::vector<Place> places;
    for (auto& one : waiting) places.push_back(one.get());
    return places;
  }

  static std::vector<Decision> vote(const std::vector<Membership*>& members, std::int64_t step) {
    std::vector<std::future<Decision>> waiting;
    for (Membership* member : members) {
      waiting.push_back(std::async(std::launch::async, [=] { return member->vote(step); }));
    }
    std::vector<Decision> decisions;
    for (auto& one : waiting) decisions.push_back(one.get());
    return decisions;
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<ServedCoordinator> server_;
};

TEST_F(Members, GetPlacesAndDecideSteps) {
  serve(2);
  const auto first = member();
  const auto second = member();
  const std::vector<Place> places = take_places({first.get(), second.get()}, {});
  EXPECT_EQ(places[0].generation, places[1].generation);
  EXPECT_NE(places[0].rank, places[1].rank);
  EXPECT_EQ(places[0].decided, kNoStep);
  EXPECT_NE(places[0].rendezvous_port, 0);
  EXPECT_EQ(places[0].rendezvous_port, places[1].rendezvous_port);
  for (const auto& one : {first.get(), second.get()}) one->begun(0);
  for (std::int64_t step = 1; step <= 20; ++step) {
    for (const Decision& decision : vote({first.get(), second.get()}, step)) {
      EXPECT_EQ(decision, (Decision{places[0].generation, step, false}));
    }
  }
}

TEST_F(Members, LearnThatAnotherOneIsLost) {
  serve(2);
  const auto first = member();
  auto second = member();
  const Generation generation = take_places({first.get(), second.get()}, {})[0].generation;
  for (const auto& one : {first.get(), second.get()}) one->begun(0);
  std::promise<std::string> told;
  first->on_abandon([&](const std::string& reason) { told.set_value(reason); });
  auto vote = std::async(std::launch::async, [&] { return first->vote(1); });
  second.reset();
  EXPECT_THAT(error_of<GenerationLost>([&] { vote.get(); }), HasSubstr("was lost"));
  EXPECT_THAT(told.get_future().get(), HasSubstr("was lost"));
  first->on_abandon({});
  EXPECT_THAT(error_of<GenerationLost>([&] { first->vote(1); }), HasSubstr("was lost"));
  EXPECT_GT(first->take_place({.step = 0, .voted = 1}, "alone").generation, generation);
}

// Whoever sets an action late hears of what was lost meanwhile, but not of an earlier generation.
TEST_F(Members, AnActionThatComesLateIsCalled) {
  serve(2);
  const auto first = member();
  auto second = member();
  take_places({first.get(), second.get()}, {});
  second.reset();
  while (error_of<GenerationLost>([&] { first->begun(0); }) == "no such error")
    std::this_thread::sleep_for(1ms);
  std::promise<std::string> told;
  first->on_abandon([&](const std::string& reason) { told.set_value(reason); });
  EXPECT_THAT(told.get_future().get(), HasSubstr("was lost"));
  std::promise<std::string> told_again;
  first->on_abandon([&](const std::string& reason) { told_again.set_value(reason); });
  EXPECT_THAT(told_again.get_future().get(), HasSubstr("was lost"));
  first->on_abandon({});
  first->take_place({}, "alone");
  first->on_abandon([](const std::string& reason) { ADD_FAILURE() << reason; });
  first->begun(0);
  EXPECT_EQ(first->vote(1).step, 1);
}

TEST_F(Members, ANewcomerMakesThemRegroup) {
  CoordinatorServer::Options both = options(1);
  both.coordinator.max_members = 2;
  server_ = std::make_unique<ServedCoordinator>(both);
  const auto first = member();
  const Generation generation = first->take_place({}, "new").generation;
  first->begun(0);
  const auto second = member();
  auto place = std::async(std::launch::async, [&] { return second->take_place({}, "new"); });
  std::int64_t step = 0;
  while (!first->vote(++step).regroup) continue;
  const Place mine = first->take_place({.step = step, .voted = kNoStep}, "regroup");
  EXPECT_EQ(mine.decided, step);
  EXPECT_GT(mine.generation, generation);
  EXPECT_EQ(mine.members.size(), 2U);
  EXPECT_EQ(place.get().members, mine.members);
}

TEST_F(Members, ComeBackToACoordinatorThatWasAway) {
  serve(1);
  const auto first = member();
  const Generation generation = first->take_place({}, "new").generation;
  first->begun(0);
  EXPECT_EQ(first->vote(1).step, 1);
  const std::uint16_t port = server_->address().port;
  server_.reset();
  EXPECT_THAT(error_of<GenerationLost>([&] { first->vote(2); }), HasSubstr("connection to the coordinator"));
  auto place = std::async(std::launch::async, [&] {
    return first->take_place({.step = 1, .voted = 2}, "the coordinator was away");
  });
  server_ = std::make_unique<ServedCoordinator>(options(1, port));
  EXPECT_GT(place.get().generation, generation);
}

TEST_F(Members, LeaveACoordinatorThatWasAway) {
  serve(1);
  const auto first = member();
  first->take_place({}, "new");
  first->begun(0);
  const std::uint16_t port = server_->address().port;
  server_.reset();
  EXPECT_THROW(first->vote(1), GenerationLost);
  auto left = std::async(std::launch::async, [&] { first->leave(); });
  server_ = std::make_unique<ServedCoordinator>(options(1, port));
  left.get();
  server_->with([&](CoordinatorServer& server) {
    EXPECT_TRUE(server.standing(first->id()).has_left.value_or(false));
    EXPECT_TRUE(server.end() && server.end()->is_finished);
  });
}

TEST_F(Members, WithoutAPlaceInTheNewGenerationHaveNoRank) {
  CoordinatorServer::Options pairs = options(4);
  pairs.coordinator.multiple = 2;
  server_ = std::make_unique<ServedCoordinator>(pairs);
  std::vector<std::unique_ptr<Membership>> members;
  for (int i = 0; i < 4; ++i) members.push_back(member());
  take_places({members[0].get(), members[1].get(), members[2].get(), members[3].get()}, {});
  members.pop_back();
  std::latch placed(2);
  std::vector<std::future<void>> ends;
  for (const auto& one : members) {
    ends.push_back(std::async(std::launch::async, [&placed, one = one.get()] {
      one->take_place({}, "a member is lost");
      placed.count_down();
    }));
  }
  placed.wait();
  std::vector<std::string> names;
  server_->with([&](CoordinatorServer& server) {
    for (const auto& one : members) names.push_back(server.standing(one->id()).name);
  });
  EXPECT_THAT(names, UnorderedElementsAre("", "rank 0", "rank 1"));
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!names[i].empty()) members[i]->leave();
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!names[i].empty()) continue;
    EXPECT_THROW(ends[i].get(), Dismissed);
  }
}

// Whoever listens where the coordinator was.
class OtherListener {
 public:
  OtherListener(const transport::Address& address, const transport::Credentials& credentials,
                std::vector<std::byte> greeting)
      : listener_(address, credentials), greeting_(std::move(greeting)) {}

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (auto newcomer = listener_.try_accept()) {
        ControlChannel channel(std::move(newcomer->connection), Sender::member);
        if (!greeting_.empty()) channel.send(greeting_);
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  transport::Listener listener_;
  std::vector<std::byte> greeting_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};  // the last: it uses the others
};

TEST_F(Members, GiveUpACoordinatorThatHangsUpOrIsNotUnderstood) {
  std::vector<std::byte> of_another_version = encode(FromCoordinator(Dismiss{true, "hello"}));
  of_another_version[4] = std::byte{77};
  for (const auto& [greeting, what] :
       {std::pair(std::vector<std::byte>(), "hangs up"), std::pair(of_another_version, "version 77")}) {
    serve(1);
    Membership::Options impatient;
    impatient.coordinator = server_->address();
    impatient.credentials = credentials();
    impatient.reconnect_timeout = 1s;
    Membership first(impatient);
    server_.reset();
    const OtherListener other(impatient.coordinator, credentials(), greeting);
    EXPECT_THAT(error_of<CommError>([&] { first.take_place({}, "new"); }), HasSubstr(what));
  }
}

TEST_F(Members, WhoseAgentEndsWithThemAreLost) {
  CoordinatorServer::Options patient = options(1);
  patient.coordinator.beat_timeout = 1h;
  server_ = std::make_unique<ServedCoordinator>(patient);
  const auto first = member();
  const Generation generation = first->take_place({}, "new").generation;
  const auto second = member();
  {
    AgentLink agent({.coordinator = server_->address(), .credentials = credentials()});
    agent.lose(first->id(), "killed by signal 9");
  }
  EXPECT_GT(second->take_place({}, "new").generation, generation);
}

TEST_F(Members, ThatEndWhileTheCoordinatorIsAwayAreLostWhenItIsBack) {
  serve(1);
  AgentLink agent({.coordinator = server_->address(), .credentials = credentials()});
  auto first = member();
  const Generation generation = first->take_place({}, "new").generation;
  const std::uint16_t port = server_->address().port;
  server_.reset();
  const MemberId ended = first->id();
  first.reset();
  agent.lose(ended, "killed by signal 9");
  CoordinatorServer::Options patient = options(1, port);
  patient.coordinator.beat_timeout = patient.coordinator.join_timeout = 1h;
  server_ = std::make_unique<ServedCoordinator>(patient);
  EXPECT_GT(member()->take_place({}, "new").generation, generation);
}

TEST_F(Members, OfAnotherRunInTheSamePlaceHaveDecidedNothing) {
  serve(1);
  Generation last = 0;
  for (const std::int64_t held : {std::int64_t{-1}, std::int64_t{7}}) {
    last = member()->take_place({.step = held}, "new").generation;
  }
  EXPECT_EQ(DecisionLog(folder_.path("decisions")).decided(), 7);
  CoordinatorServer::Options other = options(1);
  other.goes_on = false;
  server_ = std::make_unique<ServedCoordinator>(other);
  const Place place = member()->take_place({}, "new");
  EXPECT_EQ(place.decided, kNoStep);
  EXPECT_EQ(place.generation, last + 1) << "a number is never used twice";
}

TEST_F(Members, LeftOverFromAnotherRunAreDismissed) {
  serve(1);
  const auto first = member();
  first->take_place({}, "new");
  first->begun(0);
  EXPECT_EQ(first->vote(1).step, 1);
  const std::uint16_t port = server_->address().port;
  server_.reset();
  EXPECT_THROW(first->vote(2), GenerationLost);
  CoordinatorServer::Options other = options(1, port);
  other.goes_on = false;
  server_ = std::make_unique<ServedCoordinator>(other);
  EXPECT_THAT(error_of<Dismissed>([&] { first->take_place({.step = 1}, "the coordinator was away"); }),
              HasSubstr("another run"));
  EXPECT_EQ(member()->take_place({}, "new").decided, kNoStep);
}

TEST_F(Members, AreDismissedWhenTheRunIsOver) {
  serve(1);
  const auto first = member();
  first->take_place({}, "new");
  first->begun(0);
  const auto spare = member();
  auto place = std::async(std::launch::async, [&] { return spare->take_place({}, "new"); });
  first->leave();
  EXPECT_THAT(error_of<Dismissed>([&] { place.get(); }), HasSubstr("finished"));
  for (bool is_over = false; !is_over; std::this_thread::sleep_for(1ms)) {
    server_->with([&](CoordinatorServer& server) { is_over = server.end() && server.end()->is_finished; });
  }
}

// For longer than anybody may stand still.
TEST_F(Members, WaitForALogThatCannotBeWritten) {
  FullDisk disk;
  serve_on(disk, 2, 2s, 60s);
  const auto first = member();
  const auto second = member();
  auto places = std::async(std::launch::async, [&] { return take_places({first.get(), second.get()}, {}); });
  while (disk.failures < 5) std::this_thread::sleep_for(1ms);
  disk.is_full = false;
  EXPECT_EQ(places.get()[0].generation, 1U);
  for (const auto& one : {first.get(), second.get()}) one->begun(0);
  for (const Decision& decision : vote({first.get(), second.get()}, 1)) EXPECT_EQ(decision.generation, 1U);
  server_->with([](CoordinatorServer& server) { EXPECT_TRUE(server.take_fences().empty()); });
  server_.reset();
}

TEST_F(Members, EndWhenTheLogCannotBeWrittenForLong) {
  FullDisk disk;
  serve_on(disk, 1, 60s, 250ms);
  const auto first = member();
  EXPECT_THAT(error_of<Dismissed>([&] { first->take_place({}, "new"); }), HasSubstr("no room"));
  server_->with([](CoordinatorServer& server) {
    ASSERT_TRUE(server.end());
    EXPECT_FALSE(server.end()->is_finished);
    EXPECT_THAT(server.end()->reason, HasSubstr("no room"));
  });
  server_.reset();
}

TEST_F(Members, EndAtOnceWhenTheLogCannotBeWrittenAndTheRunIsToEnd) {
  FullDisk disk;
  serve_on(disk, 1, 60s, 600s);
  const auto first = member();
  auto waiting = std::async(std::launch::async,
                            [&] { return error_of<Dismissed>([&] { first->take_place({}, "new"); }); });
  bool is_over = false;
  for (int i = 0; i < 1000 && !is_over; ++i) {
    std::this_thread::sleep_for(5ms);
    server_->with([&](CoordinatorServer& server) {
      server.wind_up();
      is_over = server.end().has_value();
    });
  }
  EXPECT_THAT(waiting.get(), HasSubstr("no room"));
  server_.reset();
}

// Of another run, with garbage, or with nothing to say: the members do not notice.
TEST_F(Members, AreNotDisturbedByStrangers) {
  serve(1);
  const auto first = member();
  first->take_place({}, "new");
  first->begun(0);
  EXPECT_THROW(transport::dial(server_->address(), credentials("other"), Deadline::after(5s)),
               AuthenticationError);
  const auto talker = transport::dial(server_->address(), credentials(), Deadline::after(5s));
  std::vector<std::byte> garbage(4096, std::byte{0x5a});
  talker.connection->write_all(garbage, Deadline::after(5s));
  EXPECT_THROW(talker.connection->read_all(garbage, Deadline::after(5s)), PeerLost);
  const auto silent = transport::dial(server_->address(), credentials(), Deadline::after(5s));
  for (std::int64_t step = 1; step <= 20; ++step) EXPECT_EQ(first->vote(step).step, step);
}

TEST(MembershipFromEnvironment, IsThereOnlyWithACoordinator) {
  const test::ScopedVariable none("LOCKSTEP_COORDINATOR", nullptr);
  EXPECT_FALSE(membership_from_environment());
}

TEST(MembershipFromEnvironment, TakesWhatTheSupervisorLeft) {
  const test::ScopedVariable coordinator("LOCKSTEP_COORDINATOR", "127.0.0.1:4711");
  const test::ScopedVariable member("LOCKSTEP_MEMBER", "18446744073709551615");
  const test::ScopedVariable run("LOCKSTEP_RUN_ID", "toy");
  const auto options = membership_from_environment();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->coordinator, (transport::Address{"127.0.0.1", 4711, {}}));
  EXPECT_EQ(options->id, 18'446'744'073'709'551'615U);
  EXPECT_EQ(options->credentials.me.role, "elastic");
  EXPECT_EQ(options->credentials.me.run, "toy");
  const test::ScopedVariable wrong("LOCKSTEP_MEMBER", "me");
  EXPECT_THAT(error_of<UsageError>([] { membership_from_environment(); }),
              HasSubstr("LOCKSTEP_MEMBER is 'me'"));
}

TEST(PlacementOf, IsThatOfTheGeneration) {
  rendezvous::Placement base;
  base.master_host = {"node1", "LOCKSTEP_MASTER_ADDR"};
  base.local_rank = {3, "LOCAL_RANK"};
  base.timeout = {2s, "LOCKSTEP_RENDEZVOUS_TIMEOUT"};
  const Place place{.generation = 7,
                    .rank = 1,
                    .members = {10, 11, 12},
                    .decided = 5,
                    .attempt = 1,
                    .rendezvous_port = 4712};
  const rendezvous::Placement placement = placement_of(place, base);
  EXPECT_EQ(placement.rank.value, 1);
  EXPECT_EQ(placement.world.value, 3);
  EXPECT_EQ(placement.generation.value, 7U);
  EXPECT_EQ(placement.master(), (transport::Address{"node1", 4712, {}}));
  EXPECT_FALSE(placement.served_by_rank0.value);
  EXPECT_FALSE(placement.local_rank.value);
  EXPECT_EQ(placement.timeout.value, 2s);
}

}  // namespace
}  // namespace lockstep::elastic
