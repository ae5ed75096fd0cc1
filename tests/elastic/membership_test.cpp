// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/membership.h"

#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/elastic/coordinator_server.h"

#include "tests/elastic/members.h"
#include "tests/support/error_of.h"
#include "tests/support/refusals.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

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

TEST_F(Members, ThatAreLostKeepTheirRank) {
  serve(2);
  const auto first = member();
  auto second = member();
  const std::vector<Place> places = take_places({first.get(), second.get()}, {});
  const MemberId lost = second->id();
  second.reset();
  EXPECT_GT(first->take_place({}, "alone").generation, places[0].generation);
  server_->with([&](CoordinatorServer& server) {
    EXPECT_EQ(server.standing(lost).name, "rank " + std::to_string(places[1].rank));
  });
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

TEST_F(Members, ManyRefusalsOfStrangersAreFewLines) {
  serve(1);
  test::expect_few_refusals_logged("a stranger was turned away", [this] {
    for (int i = 0; i < 100; ++i) {
      const auto talker = transport::dial(server_->address(), credentials(), Deadline::after(5s));
      std::vector<std::byte> garbage(4096, std::byte{0x5a});
      talker.connection->write_all(garbage, Deadline::after(5s));
      EXPECT_THROW(talker.connection->read_all(garbage, Deadline::after(5s)), PeerLost);
    }
  });
}

}  // namespace
}  // namespace lockstep::elastic
