// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/contract.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using schedule::Algorithm;
using schedule::Op;

constexpr Contract kAllReduce{.op = Op::all_reduce,
                              .dtype = DType::bf16,
                              .reduce = kernels::ReduceOp::max,
                              .algorithm = Algorithm::ring,
                              .count = 1'000'000,
                              .shape_digest = 77};

// kAllReduce with one thing changed, once for each thing.
std::vector<Contract> neighbours() {
  std::vector<Contract> changed(9, kAllReduce);
  changed[0].op = Op::reduce_scatter;
  changed[1].point_to_point = true;
  changed[2].dtype = DType::fp16;
  changed[3].reduce = kernels::ReduceOp::min;
  changed[4].algorithm = Algorithm::tree;
  changed[5].inner = Algorithm::tree;
  changed[6].outer = Algorithm::tree;
  changed[7].root = 1;
  changed[8].count += 1;
  changed.push_back(kAllReduce);
  changed.back().shape_digest += 1;
  return changed;
}

TEST(Contract, EveryDifferenceChangesTheDigest) {
  std::set<std::uint64_t> digests = {digest_of(kAllReduce)};
  for (const Contract& changed : neighbours()) {
    EXPECT_NE(changed, kAllReduce);
    EXPECT_TRUE(digests.insert(digest_of(changed)).second) << describe(changed);
  }
}

TEST(Contract, SurvivesItsNotice) {
  EXPECT_EQ(from_notice(to_notice(kAllReduce)), kAllReduce);
  for (const Contract& changed : neighbours()) EXPECT_EQ(from_notice(to_notice(changed)), changed);
}

TEST(Contract, AMessageSurvivesItsWord) {
  for (const DType dtype : kAllDTypes) {
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 48}) {
      const Contract message{.point_to_point = true, .dtype = dtype, .count = count};
      EXPECT_EQ(from_message_word(message_word(message)), message);
    }
  }
  EXPECT_EQ(describe(from_message_word(0x3ff)), "send/recv(3 x unknown)");
}

TEST(Contract, APulseTravelsBesideIt) {
  transport::NoticeHead head = to_notice(kAllReduce);
  EXPECT_EQ(pulse_of(head), Pulse({.beats = 0, .waits_for = 0}));
  set_pulse(head, {.beats = 12, .waits_for = 3});
  EXPECT_EQ(pulse_of(head), Pulse({.beats = 12, .waits_for = 3}));
  EXPECT_EQ(from_notice(head), kAllReduce);
}

TEST(Contract, IsShownAsItsCall) {
  EXPECT_EQ(describe(kAllReduce), "all_reduce(max of 1000000 x bf16, ring)");
  EXPECT_EQ(describe({.op = Op::all_gather, .count = 3}), "all_gather(3 x fp32, direct)");
  EXPECT_EQ(describe({.op = Op::broadcast, .root = 2, .count = 3}), "broadcast(3 x fp32, root 2, direct)");
  EXPECT_EQ(describe({.op = Op::reduce, .root = 2, .count = 3}), "reduce(sum of 3 x fp32, root 2, direct)");
  EXPECT_EQ(describe({.op = Op::barrier, .algorithm = Algorithm::tree}), "barrier(tree)");
  EXPECT_EQ(describe({.point_to_point = true, .dtype = DType::uint8, .count = 3}), "send/recv(3 x uint8)");
  EXPECT_EQ(describe({.op = Op::all_reduce,
                      .algorithm = Algorithm::hierarchical,
                      .inner = Algorithm::ring,
                      .outer = Algorithm::tree,
                      .count = 1}),
            "all_reduce(sum of 1 x fp32, hierarchical(ring,tree))");
  EXPECT_EQ(operation_name(kAllReduce), "all_reduce");
  EXPECT_EQ(operation_name({.point_to_point = true}), "send/recv");
}

TEST(Contract, TheShapeOfAProgramShowsInItsDigest) {
  schedule::CollectiveSpec spec;
  spec.world = 4;
  spec.count = 100;
  std::set<std::uint64_t> digests = {shape_digest_of(spec)};
  const auto expect_new = [&](auto&& change) {
    schedule::CollectiveSpec changed = spec;
    change(changed);
    EXPECT_TRUE(digests.insert(shape_digest_of(changed)).second);
  };
  expect_new([](auto& s) { s.segment_elements = 10; });
  expect_new([](auto& s) { s.grid = {.rows = 2, .columns = 2, .torus = false}; });
  expect_new([](auto& s) { s.grid = {.rows = 2, .columns = 2, .torus = true}; });
  expect_new([](auto& s) { s.ranks_per_host = {1, 3}; });
  expect_new([](auto& s) { s.ranks_per_host = {3, 1}; });
  expect_new([](auto& s) { s.pieces = {{{0, 2}}, {{2, 2}}, {}, {}}; });
  expect_new([](auto& s) { s.pieces = {{{0, 2}}, {}, {{2, 2}}, {}}; });
  expect_new([](auto& s) { s.pieces = {{{0, 1}, {1, 1}}, {{2, 2}}, {}, {}}; });
}

}  // namespace
}  // namespace lockstep::comm
