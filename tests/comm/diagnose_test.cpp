// SPDX-License-Identifier: Apache-2.0
//
// What a stalled rank concludes from what its peers say.
#include "lockstep/comm/diagnose.h"

#include <array>
#include <chrono>
#include <memory>
#include <string>
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
class Diagnose : public testing::Test {
 protected:
  static constexpr std::uint64_t kFirst = 5;
  static constexpr std::uint64_t kSequence = kFirst + 2;

  Diagnose() {
    world_ = transport::make_loopback(3);
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
    operation_.execution = std::make_unique<Execution>();
    Binding& binding = operation_.execution->binding;
    binding.script = plan->script;
    binding.ports = group_->streams[0].ports;
    binding.buffers = {reinterpret_cast<std::byte*>(data_.data())};
    binding.envelope = {.contract = plan->digest, .sequence = kSequence};
    operation_.execution->start();
    operation_.execution->advance();
  }

  ~Diagnose() override { operation_.execution->abandon(); }

  transport::StreamId stream() const { return group_->collective_stream(0); }

  void says(Rank rank, std::uint64_t sequence, const Contract& contract, Pulse pulse = {}) {
    transport::NoticeHead head = to_notice(contract);
    set_pulse(head, pulse);
    endpoint_->notices[{rank, stream()}][sequence] = head;
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
                            ": rank 3x failed: y", "MPI_Init failed: no"}) {
    EXPECT_EQ(first_cause(4, other), Report({.rank = 4, .why = other}));
  }
}

}  // namespace
}  // namespace lockstep::comm
