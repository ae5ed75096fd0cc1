// SPDX-License-Identifier: Apache-2.0
//
// What a stalled rank concludes from what its peers say.
#include "lockstep/comm/diagnose.h"

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/group.h"
#include "lockstep/comm/plan.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/comm/scripted_endpoint.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using schedule::Algorithm;
using schedule::Op;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

// Rank 1 of three waits in the third call of a group whose streams were used for five calls before it came.
// Rank 3 of the world is not in it.
class Diagnose : public testing::Test {
 protected:
  static constexpr std::uint64_t kFirst = 5;
  static constexpr std::uint64_t kSequence = kFirst + 2;

  Diagnose() {
    world_ = transport::make_loopback(4);
    endpoint_ = std::make_unique<test::ScriptedEndpoint>(std::move(world_[1]));
    group_ = std::make_shared<Group>(
        *endpoint_, std::vector<Rank>{0, 1, 2},
        GroupPlace{.numbers = std::make_shared<GroupNumbers>(), .number = 4, .first_sequence = kFirst},
        GroupSettings{.name = "dp"});
    const auto plan =
        group_->planner.plan({.op = Op::all_reduce, .count = data_.size(), .algorithm = Algorithm::direct});
    operation_.group = group_;
    operation_.contract = plan->contract;
    operation_.sequence = kSequence;
    operation_.timeout = 1h;
    operation_.deadline = Deadline::after(1h);
    begin(plan->script, group_->streams[0].ports);
  }

  ~Diagnose() override { operation_.execution->abandon(); }

  void begin(std::shared_ptr<const Script> script, std::span<Port> ports) {
    operation_.execution = std::make_unique<Execution>();
    Binding& binding = operation_.execution->binding;
    binding.script = std::move(script);
    binding.ports = ports;
    binding.buffers = {reinterpret_cast<std::byte*>(data_.data())};
    binding.envelope = {.contract = digest_of(operation_.contract), .sequence = operation_.sequence};
    operation_.execution->start();
    operation_.execution->advance();
  }

  // Instead of the collective.
  void wait_for_a_message_of(Rank peer) {
    operation_.execution->abandon();
    operation_.point_to_point = true;
    operation_.contract = {.point_to_point = true, .count = data_.size()};
    schedule::Move move;
    move.sources = {{.from = peer, .slice = {}, .merges = 0}};
    move.into = {.buffer = 0, .range = {0, data_.size()}};
    begin(std::make_shared<const Script>(schedule::Program{.rank = group_->rank,
                                                           .world = group_->size(),
                                                           .buffer_elements = {data_.size()},
                                                           .scratch_from = 1,
                                                           .rounds = {{move}}}),
          group_->point_to_point_ports[0]);
  }

  transport::StreamId stream() const { return group_->collective_stream(0); }

  void says(Rank rank, std::uint64_t sequence, const Contract& contract, Pulse pulse = {}) {
    transport::NoticeHead head = to_notice(contract);
    set_pulse(head, pulse);
    endpoint_->notices[{rank, stream()}][sequence] = head;
  }

  // In whatever group it is.
  void waits(Rank rank, Rank for_whom) {
    transport::NoticeHead head{};
    set_pulse(head, {.beats = 3, .waits_for = for_whom});
    endpoint_->notices[{rank, world_pulse_stream()}][0] = head;
  }

  template <typename Expected>
  std::string conclusion(decltype(diagnose)* by = diagnose) {
    const std::exception_ptr error = by(operation_, *endpoint_);
    if (!error) return "nothing";
    try {
      std::rethrow_exception(error);
    } catch (const Expected& expected) {
      return expected.what();
    }
  }

  std::array<float, 12> data_{};
  std::vector<std::unique_ptr<transport::Endpoint>> world_;
  std::unique_ptr<test::ScriptedEndpoint> endpoint_;
  std::shared_ptr<Group> group_;
  Operation operation_;
};

TEST_F(Diagnose, WaitingAloneIsNoFailure) {
  says(0, kSequence, operation_.contract);
  EXPECT_EQ(conclusion<Error>(), "nothing");
}

TEST_F(Diagnose, CallsAreCountedByGroup) {
  EXPECT_EQ(place(operation_), "all_reduce #2 on dp");
}

TEST_F(Diagnose, AFailureElsewhereExplainsTheWait) {
  endpoint_->failures[{2, group_->first_stream}] = "its disk is full";
  EXPECT_EQ(conclusion<Aborted>(), "all_reduce #2 on dp: rank 2 failed: its disk is full");
}

TEST_F(Diagnose, OnlyTheFirstCauseIsShown) {
  endpoint_->failures[{0, group_->first_stream}] =
      "all_reduce #2 on dp: rank 2 failed: barrier #1 on dp: rank 0 is gone";
  EXPECT_EQ(conclusion<Aborted>(), "all_reduce #2 on dp: rank 2 failed: barrier #1 on dp: rank 0 is gone");
}

TEST_F(Diagnose, ADifferentCallNamesBothSides) {
  Contract other = operation_.contract;
  other.count = 13;
  says(2, kSequence, other);
  EXPECT_THAT(conclusion<ContractMismatch>(),
              StartsWith("all_reduce #2 on dp: rank 1 calls all_reduce(sum of 12 x fp32, direct) but rank 2 "
                         "calls all_reduce(sum of 13 x fp32, direct)"));
}

TEST_F(Diagnose, ADifferentShapeOfTheSameCallIsExplained) {
  Contract other = operation_.contract;
  other.shape_digest += 1;
  says(2, kSequence, other);
  EXPECT_THAT(conclusion<ContractMismatch>(), HasSubstr("with another grid, other lanes, segments or hosts"));
}

TEST_F(Diagnose, ADeadPeerIsNamed) {
  endpoint_->dead = {2};
  EXPECT_THAT(
      conclusion<PeerLost>(),
      MatchesRegex("all_reduce #2 on dp: rank 2 is gone \\(its process ended or its connection closed\\) "
                   "after 0 of 16 bytes and [0-9.]+ s of waiting"));
}

TEST_F(Diagnose, APeerThatIsGoneBeforeTheCallIsNamedWithoutAWait) {
  operation_.script = operation_.execution->binding.script;
  endpoint_->dead = {2};
  EXPECT_EQ(conclusion<PeerLost>(diagnose_unheard),
            "all_reduce #2 on dp: rank 2 is gone (its process ended or its connection closed)");
}

TEST_F(Diagnose, WhoHasNotArrivedIsNamedWithItsLastCall) {
  operation_.deadline = Deadline::after(0s);
  says(0, kSequence, operation_.contract);
  says(2, kSequence - 1, operation_.contract);
  EXPECT_THAT(conclusion<Timeout>(),
              MatchesRegex("all_reduce #2 on dp: rank 2 has not arrived after [0-9.]+ s and 0 of 16 bytes "
                           "\\(its last known call there was #1\\)"));
}

TEST_F(Diagnose, CallsOfAnEarlierGroupDoNotCount) {
  operation_.deadline = Deadline::after(0s);
  says(0, kSequence, operation_.contract);
  says(2, kFirst - 1, operation_.contract, {.beats = 7, .waits_for = 0});
  listen(operation_, *endpoint_);
  EXPECT_EQ(operation_.heard[2].pulse, Pulse{});
  EXPECT_THAT(conclusion<Timeout>(),
              AllOf(HasSubstr("rank 2 has not arrived"), HasSubstr("no call of it is known here")));
}

TEST_F(Diagnose, TheChainOfWaitingRanksIsFollowedToTheSilentOne) {
  operation_.deadline = Deadline::after(0s);
  says(0, kSequence, operation_.contract, {.beats = 3, .waits_for = 2});
  says(2, kSequence, operation_.contract);
  listen(operation_, *endpoint_);
  EXPECT_THAT(conclusion<Timeout>(), HasSubstr("rank 2 silent"));
}

// The other one waits for us and for the silent one, as we do.
TEST_F(Diagnose, OfTwoThatAreAwaitedTheSilentOneIsNamed) {
  operation_.deadline = Deadline::after(0s);
  says(0, kSequence, operation_.contract, {.beats = 3, .waits_for = 1});
  says(2, kSequence, operation_.contract);
  listen(operation_, *endpoint_);
  EXPECT_EQ(awaited_peer(operation_), 2);
  EXPECT_THAT(conclusion<Timeout>(), HasSubstr("rank 2 silent"));
}

TEST_F(Diagnose, OfRanksThatWaitForEachOthersMessagesTheSilentOneIsNamed) {
  wait_for_a_message_of(0);
  operation_.deadline = Deadline::after(0s);
  waits(0, 2);
  waits(2, 3);
  listen(operation_, *endpoint_);
  EXPECT_THAT(conclusion<Timeout>(), StartsWith("send/recv #0 on dp: rank 3 silent for"));
}

TEST_F(Diagnose, OneThatHasStoppedBeatingIsSilent) {
  wait_for_a_message_of(0);
  operation_.deadline = Deadline::after(0s);
  waits(0, 2);
  waits(2, 3);
  listen(operation_, *endpoint_);
  operation_.heard_in_world[2].changed -= operation_.timeout;
  EXPECT_THAT(conclusion<Timeout>(), HasSubstr("rank 2 silent for"));
}

TEST_F(Diagnose, OfACircleTheLastBeforeUsIsNamed) {
  wait_for_a_message_of(0);
  operation_.deadline = Deadline::after(0s);
  waits(0, 2);
  waits(2, 1);
  listen(operation_, *endpoint_);
  EXPECT_THAT(conclusion<Timeout>(), HasSubstr("rank 2 silent for"));
}

TEST_F(Diagnose, WhomALateRankWaitsForIsTold) {
  operation_.deadline = Deadline::after(0s);
  says(0, kSequence, operation_.contract);
  says(2, kSequence - 1, operation_.contract);
  waits(2, 3);
  listen(operation_, *endpoint_);
  EXPECT_THAT(conclusion<Timeout>(),
              AllOf(HasSubstr("rank 2 has not arrived"), HasSubstr("), because it waits for rank 3")));
}

TEST_F(Diagnose, ADisagreementOnAMessageWaitsForTheOthersCallUntilTheDeadline) {
  operation_.mismatch = transport::EnvelopeMismatch{.mine = {.contract = 1, .sequence = kSequence},
                                                    .theirs = {.contract = 2, .sequence = kSequence + 1}};
  EXPECT_EQ(conclusion<Error>(), "nothing") << "it may still say what it is doing";
  operation_.deadline = Deadline::after(0s);
  EXPECT_THAT(conclusion<ContractMismatch>(), AllOf(HasSubstr("of call #2"), HasSubstr("of call #3")));
}

TEST(FirstCause, IsFoundInWhatIsPassedOn) {
  EXPECT_EQ(first_cause(4, "the disk is full"), Report({.rank = 4, .why = "the disk is full"}));
  EXPECT_EQ(first_cause(4, "barrier #1 on dp: rank 12 failed: no memory"),
            Report({.rank = 12, .why = "no memory"}));
  EXPECT_EQ(first_cause(4, "all_reduce #0 on a: b: rank 3 failed: x"), Report({.rank = 3, .why = "x"}));
  for (const char* other : {"", " failed: x", "rank failed: x", ": rank failed: x", ": rank x failed: y",
                            ": rank 3x failed: y", ": rank -3 failed: y", "MPI_Init failed: no"}) {
    EXPECT_EQ(first_cause(4, other), Report({.rank = 4, .why = other}));
  }
}

}  // namespace
}  // namespace lockstep::comm
