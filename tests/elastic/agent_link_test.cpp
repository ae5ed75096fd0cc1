// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/agent_link.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/elastic/coordinator_server.h"
#include "lockstep/elastic/membership.h"
#include "lockstep/elastic/message_codec.h"

#include "tests/elastic/members.h"
#include "tests/elastic/other_listener.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;

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

TEST_F(Members, OfAnAgentEndWhenItsCoordinatorHangsUpOrIsNotUnderstood) {
  std::vector<std::byte> of_another_version = encode(ToAgent(Brief{"hello"}));
  of_another_version[4] = std::byte{77};
  for (const auto& [greeting, what] :
       {std::pair(std::vector<std::byte>(), "hangs up"), std::pair(of_another_version, "version 77")}) {
    serve(1);
    const transport::Address address = server_->address();
    AgentLink agent({.coordinator = address, .credentials = credentials(), .reconnect_timeout = 1s});
    server_.reset();
    const OtherListener other(address, credentials(), greeting);
    for (; !agent.end(); agent.turn()) std::this_thread::sleep_for(1ms);
    EXPECT_FALSE(agent.end()->is_finished);
    // One that hangs up at once may be gone before it is known whose process it is.
    EXPECT_THAT(agent.end()->reason, AnyOf(HasSubstr(what), HasSubstr("holds the other end")));
  }
}

}  // namespace
}  // namespace lockstep::elastic
