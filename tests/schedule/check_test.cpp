// SPDX-License-Identifier: Apache-2.0
//
// Small programs written by hand: right ones, and one for each way of being wrong.
#include "lockstep/schedule/check/check.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::schedule {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Programs = std::vector<Program>;

constexpr bool kFinish = true;

Source local(Slice slice, std::uint8_t merges = 0) {
  return {.from = kLocal, .slice = slice, .merges = merges};
}

Source message(Rank from, std::uint8_t merges = 0) {
  return {.from = from, .slice = {}, .merges = merges};
}

Move send(Slice slice, std::vector<Rank> to) {
  return {.sources = {local(slice)}, .into = {}, .send_to = std::move(to), .finish = false};
}

Move receive(Rank from, Slice into) {
  return {.sources = {message(from)}, .into = into, .send_to = {}, .finish = false};
}

Move reduce(std::vector<Source> sources, Slice into, std::vector<Rank> to = {}, bool finish = false) {
  return {.sources = std::move(sources), .into = into, .send_to = std::move(to), .finish = finish};
}

Program program(Rank rank, int world, std::vector<std::size_t> buffers, std::vector<Round> rounds,
                std::uint32_t scratch_from = 1) {
  return {.rank = rank,
          .world = world,
          .buffer_elements = std::move(buffers),
          .scratch_from = scratch_from,
          .rounds = std::move(rounds)};
}

CollectiveSpec spec_of(Op op, int world, std::size_t count, Algorithm algorithm = Algorithm::ring) {
  CollectiveSpec spec;
  spec.op = op;
  spec.algorithm = algorithm;
  spec.world = world;
  spec.count = count;
  return spec;
}

constexpr Slice kFirst = {0, {0, 4}};
constexpr Slice kSecond = {0, {4, 8}};
constexpr Slice kAll = {0, {0, 8}};
constexpr Slice kScratch = {1, {0, 8}};

// Each rank reduces its chunk and returns it, all in one round and in place.
Programs exchange_in_place() {
  return {program(0, 2, {8},
                  {{send(kSecond, {1}), reduce({local(kFirst), message(1, 1)}, kFirst, {1}, kFinish),
                    receive(1, kSecond)}}),
          program(1, 2, {8},
                  {{send(kFirst, {0}), reduce({message(0), local(kSecond, 1)}, kSecond, {0}, kFinish),
                    receive(0, kFirst)}})};
}

CollectiveSpec exchange_spec() {
  return spec_of(Op::all_reduce, 2, 8, Algorithm::direct);
}

// Rank 0 collects both values in scratch, adds, and sends the sum back.
Programs reduce_through_root() {
  return {program(0, 2, {8, 8},
                  {{receive(1, kScratch)}, {reduce({local(kAll), local(kScratch, 1)}, kAll, {1}, kFinish)}}),
          program(1, 2, {8}, {{send(kAll, {0})}, {receive(0, kAll)}})};
}

CollectiveSpec root_spec() {
  return spec_of(Op::all_reduce, 2, 8);
}

void expect_right(const CollectiveSpec& spec, const Programs& programs) {
  const CheckResult result = check(spec, programs);
  EXPECT_FALSE(result.violation) << result.violation->to_string();
}

void expect_wrong(const CollectiveSpec& spec, const Programs& programs, const std::string& reason) {
  const CheckResult result = check(spec, programs);
  ASSERT_TRUE(result.violation) << "accepted, but expected: " << reason;
  EXPECT_THAT(result.violation->to_string(), HasSubstr(reason));
}

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
  const Cost root = check(root_spec(), reduce_through_root()).cost;
  EXPECT_THAT(root.elements_combined, ElementsAre(8, 0));
  EXPECT_THAT(root.scratch_elements, ElementsAre(8, 0));
  EXPECT_EQ(root.depth, 2);
}

TEST(Check, DepthCountsSendsThatMustBeTakenBeforeTheNextRound) {
  const Programs one_by_one = {program(0, 3, {8}, {{send(kAll, {1})}, {send(kAll, {2})}}),
                               program(1, 3, {8}, {{receive(0, kAll)}}),
                               program(2, 3, {8}, {{receive(0, kAll)}})};
  EXPECT_EQ(check(spec_of(Op::broadcast, 3, 8), one_by_one).cost.depth, 2);
  Programs together = one_by_one;
  together[0].rounds = {{send(kAll, {1, 2})}};
  EXPECT_EQ(check(spec_of(Op::broadcast, 3, 8), together).cost.depth, 1);
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

TEST(CheckContents, RefusesToReadWhatHoldsNothing) {
  Programs programs = reduce_through_root();
  programs[0].rounds[0][0].into = {1, {8, 16}};
  programs[0].buffer_elements[1] = 16;
  expect_wrong(
      root_spec(), programs,
      "rank 0, round 1, move 0, elements [0, 8): reads elements of buffer 1 that hold nothing specified");
  const Programs backwards = {program(0, 2, {8}, {{receive(1, kAll)}}),
                              program(1, 2, {8}, {{send(kAll, {0})}})};
  expect_wrong(spec_of(Op::broadcast, 2, 8), backwards,
               "rank 1, round 0, move 0, elements [0, 8): reads elements");
}

TEST(CheckContents, ExactAlgorithmsAddInTheCanonicalOrder) {
  Programs programs = exchange_in_place();
  std::swap(programs[0].rounds[0][1].sources[0].from, programs[0].rounds[0][1].sources[1].from);
  std::swap(programs[0].rounds[0][1].sources[0].slice, programs[0].rounds[0][1].sources[1].slice);
  expect_wrong(exchange_spec(), programs,
               "rank 0, elements [0, 4): ends with (r1+r0), not in the canonical order (r0+r1)");
  CollectiveSpec any_order = exchange_spec();
  any_order.algorithm = Algorithm::ring;
  expect_right(any_order, programs);
}

TEST(CheckContents, EveryContributionCountsOnce) {
  Programs programs = reduce_through_root();
  programs[0].rounds[1][0].sources = {local(kAll), local(kScratch, 1), local(kScratch, 1)};
  expect_wrong(root_spec(), programs,
               "rank 0, elements [0, 8): ends with ((r0+r1)+r1), which has more than 2");
  programs[0].rounds[1][0].sources = {local(kAll), local(kAll, 1)};
  expect_wrong(root_spec(), programs, "ends with (r0+r0), in which rank 0 contributes 2 times");
}

TEST(CheckContents, FinishesExactlyOnce) {
  Programs programs = reduce_through_root();
  programs[0].rounds[1][0].finish = false;
  expect_wrong(root_spec(), programs, "ends with (r0+r1), which is not finished");
  programs = reduce_through_root();
  programs[1].rounds[1][0].finish = true;
  expect_wrong(root_spec(), programs,
               "rank 1, elements [0, 8): ends with a value that was finished before all");
  programs = reduce_through_root();
  programs[0].rounds[0][0].finish = true;
  expect_wrong(root_spec(), programs, "finished before all");
}

TEST(CheckContents, AllRanksHoldTheSameOrder) {
  const Programs programs = {program(0, 2, {8, 8},
                                     {{send(kAll, {1}), receive(1, kScratch)},
                                      {reduce({local(kAll), local(kScratch, 1)}, kAll, {}, kFinish)}}),
                             program(1, 2, {8, 8},
                                     {{send(kAll, {0}), receive(0, kScratch)},
                                      {reduce({local(kAll), local(kScratch, 1)}, kAll, {}, kFinish)}})};
  expect_wrong(root_spec(), programs,
               "rank 1, elements [0, 8): ends with another order of addition than rank 0");
}

TEST(CheckContents, SeesShiftedElements) {
  Programs programs = reduce_through_root();
  programs[0].rounds[0] = {reduce({message(1)}, {1, {0, 4}}), reduce({message(1)}, {1, {4, 8}})};
  programs[1].rounds[0] = {send(kFirst, {0}), send(kSecond, {0})};
  expect_right(root_spec(), programs);
  programs[1].rounds[0][1].sources[0].slice.range = {3, 7};
  expect_wrong(root_spec(), programs,
               "rank 0, elements [4, 8): ends with a sum of different elements: (r0+r1[-1])");
}

TEST(CheckContents, SeesShiftedResults) {
  Programs programs = reduce_through_root();
  programs[0].rounds[1].push_back(send(kScratch, {1}));
  programs[0].rounds.pop_back();
  programs[0].rounds.push_back({reduce({local(kAll), local(kScratch, 1)}, kAll, {}, kFinish)});
  programs[0].rounds.push_back({send(kSecond, {1}), send(kFirst, {1})});
  programs[1].rounds[1] = {receive(0, kFirst), receive(0, kSecond)};
  expect_wrong(root_spec(), programs,
               "rank 1, elements [0, 4): ends with finished((r0+r1)) of elements +4 away");
}

TEST(CheckContract, GathersTheRightChunks) {
  const CollectiveSpec spec = spec_of(Op::all_gather, 2, 8);
  Programs programs = {program(0, 2, {8}, {{send(kFirst, {1}), receive(1, kSecond)}}),
                       program(1, 2, {8}, {{send(kSecond, {0}), receive(0, kFirst)}})};
  expect_right(spec, programs);
  programs[0].rounds[0].pop_back();
  programs[1].rounds[0].erase(programs[1].rounds[0].begin());
  expect_wrong(spec, programs,
               "rank 0, elements [4, 8): buffer 0 ends with nothing specified where the contract asks r1");
}

TEST(CheckContract, TransposesBlocks) {
  const CollectiveSpec spec = spec_of(Op::all_to_all, 2, 2);
  const auto part = [](Rank me) {
    const Rank peer = 1 - me;
    const Range mine = {static_cast<std::size_t>(me) * 2, static_cast<std::size_t>(me) * 2 + 2};
    const Range theirs = {static_cast<std::size_t>(peer) * 2, static_cast<std::size_t>(peer) * 2 + 2};
    return program(
        me, 2, {4, 4},
        {{reduce({local({0, mine})}, {1, mine}), send({0, theirs}, {peer}), receive(peer, {1, theirs})}}, 2);
  };
  Programs programs = {part(0), part(1)};
  expect_right(spec, programs);
  programs[1].rounds[0][1].sources[0].slice.range = {2, 4};
  expect_wrong(
      spec, programs,
      "rank 0, elements [2, 4): buffer 1 ends with r1 at [2, 4) where the contract asks r1 at [0, 2)");
}

TEST(CheckContract, RootsAndScattersNameTheirOwnPart) {
  Programs programs = reduce_through_root();
  programs[0].rounds[1][0].send_to.clear();
  programs[1].rounds.pop_back();
  CollectiveSpec spec = spec_of(Op::reduce, 2, 8);
  expect_right(spec, programs);
  spec.root = 1;
  expect_wrong(spec, programs, "rank 1, elements [0, 8): ends with r1, which is not finished");
  spec.op = Op::reduce_scatter;
  expect_wrong(spec, programs, "rank 1, elements [4, 8): ends with r1, which is not finished");
}

TEST(CheckContract, FollowsTheLaneTree) {
  CollectiveSpec spec = spec_of(Op::all_reduce, 2, 8, Algorithm::direct);
  spec.pieces = {{{0, 1}}, {{1, 1}, {2, 2}}};
  const auto programs_that_add = [](std::vector<Source> sources) {
    return Programs{
        program(0, 2, {8, 16},
                {{receive(1, {1, {0, 8}}), receive(1, {1, {8, 16}})},
                 {reduce(std::move(sources), kAll, {1}, kFinish)}}),
        program(1, 2, {8, 8}, {{send(kAll, {0}), send({1, {0, 8}}, {0})}, {receive(0, kAll)}}, 2)};
  };
  const Slice kUpper = {1, {8, 16}};
  expect_right(spec, programs_that_add({local(kAll), local(kScratch, 1), local(kUpper, 1)}));
  expect_wrong(spec, programs_that_add({local(kAll), local(kScratch), local(kUpper, 2)}),
               "ends with (r0+(r1+r1.1)), not in the canonical order ((r0+r1)+r1.1)");
}

TEST(CheckContract, ARankWithoutLanesBringsNothing) {
  CollectiveSpec spec = spec_of(Op::all_reduce, 2, 8, Algorithm::direct);
  spec.pieces = {{}, {{0, 1}}};
  Programs programs = {program(0, 2, {8}, {{receive(1, kAll)}}),
                       program(1, 2, {8}, {{reduce({local(kAll)}, kAll, {0}, kFinish)}})};
  expect_right(spec, programs);
  std::swap(programs[0].rounds, programs[1].rounds);
  programs[0].rounds[0][0].send_to = {1};
  programs[1].rounds[0][0].sources[0].from = 0;
  expect_wrong(spec, programs,
               "rank 0, round 0, move 0, elements [0, 8): reads elements of buffer 0 that hold nothing");
}

TEST(CheckBarrier, EveryRankHearsOfEveryOther) {
  const Slice token = {0, {0, 1}};
  const Slice heard = {0, {1, 2}};
  const CollectiveSpec spec = spec_of(Op::barrier, 3, 0);
  Programs programs = {
      program(0, 3, {2}, {{receive(1, heard)}, {receive(2, heard)}, {send(token, {1, 2})}}, 0),
      program(1, 3, {2}, {{send(token, {0})}, {receive(0, heard)}}, 0),
      program(2, 3, {2}, {{send(token, {0})}, {receive(0, heard)}}, 0),
  };
  expect_right(spec, programs);
  // Rank 1 now goes on as soon as rank 0 has heard of it, and rank 2 may not have come yet.
  std::swap(programs[0].rounds[1], programs[0].rounds[2]);
  programs[0].rounds[1] = {send(token, {1})};
  programs[0].rounds.push_back({send(token, {2})});
  expect_wrong(spec, programs, "rank 1: can leave the barrier before rank 2 has entered it");
}

TEST(CheckBarrier, ThatAMessageWasTakenTellsNothing) {
  const Slice token = {0, {0, 1}};
  const Programs programs = {program(0, 2, {1}, {{send(token, {1})}}, 0),
                             program(1, 2, {1}, {{receive(0, token)}}, 0)};
  expect_wrong(spec_of(Op::barrier, 2, 0), programs,
               "rank 0: can leave the barrier before rank 1 has entered it");
}

}  // namespace
}  // namespace lockstep::schedule
