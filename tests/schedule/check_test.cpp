// SPDX-License-Identifier: Apache-2.0
//
// Programs of the right form, and one for each way of being malformed, getting stuck or racing with itself.
#include "lockstep/schedule/check/check.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/hand_written.h"

namespace lockstep::schedule::testing {
namespace {

using ::testing::ElementsAre;

TEST(Check, ProvesAnExchangeInPlace) {
  expect_right(exchange_spec(), exchange_in_place());
}

TEST(Check, ProvesAReductionThroughScratch) {
  expect_right(root_spec(), reduce_through_root());
}

TEST(Check, CountsWhatProgramsCost) {
  const Cost exchange = check(exchange_spec(), exchange_in_place()).cost;
  EXPECT_THAT(exchange.elements_sent, ElementsAre(8, 8));
  EXPECT_THAT(exchange.elements_combined, ElementsAre(4, 4));
  EXPECT_THAT(exchange.scratch_elements, ElementsAre(0, 0));
  EXPECT_EQ(exchange.depth, 2);
  const Cost root = check_without_formulas(root_spec(), reduce_through_root()).cost;
  EXPECT_THAT(root.elements_combined, ElementsAre(8, 0));
  EXPECT_THAT(root.scratch_elements, ElementsAre(8, 0));
  EXPECT_EQ(root.depth, 2);
}

TEST(Check, DepthCountsSendsThatMustBeTakenBeforeTheNextRound) {
  const Programs one_by_one = {program(0, 3, {8}, {{send(kAll, {1})}, {send(kAll, {2})}}),
                               program(1, 3, {8}, {{receive(0, kAll)}}),
                               program(2, 3, {8}, {{receive(0, kAll)}})};
  EXPECT_EQ(check_without_formulas(spec_of(Op::broadcast, 3, 8), one_by_one).cost.depth, 2);
  Programs together = one_by_one;
  together[0].rounds = {{send(kAll, {1, 2})}};
  EXPECT_EQ(check_without_formulas(spec_of(Op::broadcast, 3, 8), together).cost.depth, 1);
}

TEST(CheckCost, ExpectsTheBytesOfTheFormula) {
  Programs programs = exchange_in_place();
  ASSERT_FALSE(check(exchange_spec(), programs).violation);
  programs[0].rounds.push_back({receive(1, kSecond)});
  programs[1].rounds.push_back({send(kSecond, {0})});
  expect_right(exchange_spec(), programs);
  expect_wrong(exchange_spec(), programs, "rank 1: sends 12 elements, by the formula 8");
}

TEST(CheckCost, ExpectsTheAdditionsOfTheFormula) {
  Programs programs = exchange_in_place();
  programs[1].buffer_elements = {8, 8};
  programs[1].rounds.push_back({reduce({local(kAll), local(kAll, 1)}, kScratch)});
  expect_right(exchange_spec(), programs);
  expect_wrong(exchange_spec(), programs, "all ranks: add 16 elements, by the formula 8");
}

TEST(CheckCost, ExpectsTheDepthOfTheFormula) {
  Programs one_by_one = {program(0, 3, {8}, {{send(kAll, {1})}, {send(kAll, {2})}}),
                         program(1, 3, {8}, {{receive(0, kAll)}}), program(2, 3, {8}, {{receive(0, kAll)}})};
  const CollectiveSpec spec = spec_of(Op::broadcast, 3, 8, Algorithm::one_shot);
  expect_right(spec, one_by_one);
  expect_wrong(spec, one_by_one, "all ranks: are 2 messages deep, by the formula 1");
}

TEST(Check, AWorldOfOneMayDoNothing) {
  expect_right(spec_of(Op::all_reduce, 1, 8), {program(0, 1, {8}, {})});
  expect_right(spec_of(Op::all_reduce, 1, 8),
               {program(0, 1, {8}, {{reduce({local(kAll)}, kAll, {}, kFinish)}})});
  expect_right(spec_of(Op::barrier, 1, 0), {program(0, 1, {}, {}, 0)});
}

TEST(Check, NothingToMoveIsRight) {
  expect_right(spec_of(Op::all_reduce, 2, 0), {program(0, 2, {0}, {}), program(1, 2, {0}, {})});
}

TEST(CheckRules, NamesTheMove) {
  Programs programs = reduce_through_root();
  programs[0].rounds[1][0].into = {0, {0, 9}};
  const CheckResult result = check(root_spec(), programs);
  ASSERT_TRUE(result.violation);
  EXPECT_EQ(
      result.violation->to_string(),
      "rank 0, round 1, move 0, elements [0, 9): the destination passes the end of buffer 0, which holds 8 "
      "elements");
}

TEST(CheckRules, RefusesProgramsForSomethingElse) {
  Programs programs = reduce_through_root();
  std::swap(programs[0], programs[1]);
  expect_wrong(root_spec(), programs, "its program says that it is for rank 1");
  programs = reduce_through_root();
  programs[1].world = 3;
  expect_wrong(root_spec(), programs, "rank 1: its program is for a world of 3, not 2");
  programs = reduce_through_root();
  programs[1].buffer_elements[0] = 9;
  expect_wrong(root_spec(), programs, "buffer 0 has 9 elements, not 8");
  programs[1].scratch_from = 0;
  expect_wrong(root_spec(), programs, "binds 0 buffers of the caller (1 in all), not 1");
  programs.pop_back();
  expect_wrong(root_spec(), programs, "there are 1 programs for a world of 2");
}

TEST(CheckRules, RefusesSpecsThatMakeNoSense) {
  CollectiveSpec spec = spec_of(Op::broadcast, 2, 8);
  spec.root = 2;
  expect_wrong(spec, reduce_through_root(), "the root 2 is not in a world of 2");
  expect_wrong(spec_of(Op::all_to_all, 2, SIZE_MAX / 2 + 1), reduce_through_root(),
               "pass the largest buffer");
  spec = root_spec();
  spec.pieces = {{{0, 2}}, {{2, 1}}};
  expect_wrong(spec, reduce_through_root(), "cover 3 lanes");
  spec.pieces = {{{0, 1}}, {{1, 2}}};
  expect_wrong(spec, reduce_through_root(), "is not the next subtree");
  spec.pieces = {{{0, 1}}};
  expect_wrong(spec, reduce_through_root(), "pieces of 1 ranks");
}

TEST(CheckRules, RefusesMovesThatAreNone) {
  const auto with = [](const Move& move) {
    Programs programs = reduce_through_root();
    programs[0].rounds[1] = {move};
    return programs;
  };
  expect_wrong(root_spec(), with(reduce({}, kAll)), "it has no source");
  expect_wrong(root_spec(), with(reduce(std::vector<Source>(kMaxSources + 1, local(kAll)), kAll)),
               "it has 4097 sources");
  expect_wrong(root_spec(), with(reduce({local({2, {0, 8}})}, kAll)), "there are only 2 buffers");
  expect_wrong(root_spec(), with(reduce({local({0, {3, 3}})}, kAll)), "holds no element");
  expect_wrong(root_spec(), with(reduce({local({0, {5, 3}})}, kAll)), "holds no element");
  expect_wrong(root_spec(), with(reduce({message(2)}, kAll)), "it takes a message from rank 2");
  expect_wrong(root_spec(), with(reduce({message(-2)}, kAll)), "it takes a message from rank -2");
  expect_wrong(root_spec(), with(reduce({message(0)}, kAll)), "it takes a message from its own rank");
  expect_wrong(root_spec(), with(send(kAll, {0})), "it sends to its own rank");
  expect_wrong(root_spec(), with(send(kAll, {7})), "it sends to rank 7");
  expect_wrong(root_spec(), with(send(kAll, {})), "neither stores nor sends");
  expect_wrong(root_spec(), with(reduce({local(kFirst)}, kScratch)),
               "a source of 4 elements goes into a value of 8");
  expect_wrong(root_spec(), with(reduce({local(kAll), local(kScratch)}, kAll)), "its merges leave 2 values");
  expect_wrong(root_spec(), with(reduce({local(kAll), local(kScratch, 2)}, kAll)), "source 1 merges 2 times");
  expect_wrong(root_spec(), with(reduce({local({0, {1, 5}})}, kFirst)),
               "overlaps a source without being equal");
}

TEST(CheckRules, SendsOfMadeValuesNeedADestination) {
  Programs programs = reduce_through_root();
  programs[0].rounds[1][0].into.reset();
  expect_wrong(root_spec(), programs, "has no destination to send it from");
  programs = reduce_through_root();
  programs[1].rounds[0][0].finish = true;
  expect_wrong(root_spec(), programs, "has no destination to send it from");
}

TEST(CheckRules, OnlyReductionsFinish) {
  const Programs programs = {program(0, 2, {8}, {{send(kAll, {1})}}),
                             program(1, 2, {8}, {{reduce({message(0)}, kAll, {}, kFinish)}})};
  expect_wrong(spec_of(Op::broadcast, 2, 8), programs, "it finishes a reduction, but broadcast makes none");
}

TEST(CheckMatching, NamesMessagesWithoutAPartner) {
  Programs programs = reduce_through_root();
  programs[1].rounds.pop_back();
  expect_wrong(root_spec(), programs,
               "rank 0, round 1, move 0, elements [0, 8): sends message 0 to rank 1, which");
  programs = reduce_through_root();
  programs[1].rounds.push_back({receive(0, kAll)});
  expect_wrong(root_spec(), programs,
               "rank 1, round 2, move 0, elements [0, 8): takes message 1 from rank 0, which");
}

TEST(CheckMatching, ComparesSizes) {
  Programs programs = reduce_through_root();
  programs[1].rounds[1][0].into = kFirst;
  expect_wrong(
      root_spec(), programs,
      "rank 1, round 1, move 0, elements [0, 4): takes a message of 8 elements from rank 0 (round 1, move "
      "0) into a value of 4");
}

TEST(CheckProgress, FindsTwoRanksThatBothSendFirst) {
  const Programs programs = {program(0, 2, {8, 8}, {{send(kAll, {1})}, {receive(1, kScratch)}}),
                             program(1, 2, {8, 8}, {{send(kAll, {0})}, {receive(0, kScratch)}})};
  expect_wrong(
      root_spec(), programs,
      "rank 0, round 0, move 0, elements [0, 8): deadlock: it sends a message that rank 1 (round 1, move 0; "
      "it is stuck in round 0) cannot take");
}

TEST(CheckProgress, FindsTwoValuesThatWaitForEachOther) {
  const Programs programs = {program(0, 2, {8}, {{reduce({local(kAll), message(1, 1)}, kAll, {1})}}),
                             program(1, 2, {8}, {{reduce({local(kAll), message(0, 1)}, kAll, {0})}})};
  expect_wrong(root_spec(), programs,
               "rank 0, round 0, move 0, elements [0, 8): deadlock: it waits for a message");
}

// Rank 1 sends the value it makes from rank 0's message first, and the one rank 0 needs for that message
// second: messages do not overtake one another.
TEST(CheckProgress, MessagesOfAPairTravelInOrder) {
  const Slice kThird = {1, {0, 4}};
  const Slice kFourth = {1, {4, 8}};
  const Programs programs = {
      program(0, 2, {8, 8}, {{receive(1, kThird), reduce({local(kFirst), message(1, 1)}, kFirst, {1})}}),
      program(1, 2, {8, 8}, {{reduce({message(0)}, kFourth, {0}), send(kFirst, {0})}})};
  expect_wrong(root_spec(), programs, "deadlock");
}

// The same moves, but the reduced chunk leaves before the chunk that the peer needs for its own.
TEST(CheckHazards, TheReturnedValueMustBeTheMatchedOne) {
  Programs programs = exchange_in_place();
  std::swap(programs[0].rounds[0][0], programs[0].rounds[0][1]);
  std::swap(programs[1].rounds[0][0], programs[1].rounds[0][1]);
  expect_wrong(exchange_spec(), programs,
               "rank 0, round 0, move 2, elements [4, 8): writes elements of buffer 0");
}

TEST(CheckHazards, AllowsOnlyTheVeryExchange) {
  Programs programs = exchange_in_place();
  programs[0].rounds[0][2].into = {0, {3, 7}};
  expect_wrong(
      exchange_spec(), programs,
      "rank 0, round 0, move 2, elements [3, 4): writes elements of buffer 0 that move 1 of the same round "
      "writes");
}

TEST(CheckHazards, TheReturnedValueMustBeMadeFromTheMessage) {
  // Rank 1 returns what it sent, not what it got: rank 0 might overwrite its slice before rank 1 took it.
  const Programs programs = {program(0, 2, {8, 8}, {{send(kAll, {1}), receive(1, kAll)}}),
                             program(1, 2, {8, 8}, {{send(kAll, {0}), receive(0, kScratch)}})};
  expect_wrong(root_spec(), programs,
               "rank 0, round 0, move 1, elements [0, 8): writes elements of buffer 0 that move 0");
}

TEST(CheckHazards, TheSliceMustNotGoToAnyoneElse) {
  const Programs programs = {
      program(0, 3, {8}, {{send(kAll, {1, 2}), receive(1, kAll)}}),
      program(1, 3, {8}, {{reduce({local(kAll), message(0, 1)}, kAll, {0})}}),
      program(2, 3, {8, 8}, {{receive(0, kScratch)}}),
  };
  expect_wrong(spec_of(Op::all_reduce, 3, 8), programs, "rank 0, round 0, move 1");
}

TEST(CheckHazards, RefusesToReadWhatTheRoundWrites) {
  Programs programs = reduce_through_root();
  programs[0].rounds = {{programs[0].rounds[0][0], programs[0].rounds[1][0]}};
  expect_wrong(root_spec(), programs, "reads elements of buffer 1 that move 0 of the same round writes");
}

}  // namespace
}  // namespace lockstep::schedule::testing
