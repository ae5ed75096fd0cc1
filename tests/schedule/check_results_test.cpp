// SPDX-License-Identifier: Apache-2.0
//
// Programs that run well but leave something else than the collective promises.
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"

#include "tests/schedule/hand_written.h"

namespace lockstep::schedule::testing {
namespace {

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
}  // namespace lockstep::schedule::testing
