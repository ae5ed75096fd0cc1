// SPDX-License-Identifier: Apache-2.0
//
// Members whose coordinator goes away, comes back, or is another one then.
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/elastic/coordinator_server.h"
#include "lockstep/elastic/decision_log.h"
#include "lockstep/elastic/membership.h"
#include "lockstep/elastic/message_codec.h"

#include "tests/elastic/members.h"
#include "tests/elastic/other_listener.h"
#include "tests/support/error_of.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using testing::HasSubstr;

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

}  // namespace
}  // namespace lockstep::elastic
