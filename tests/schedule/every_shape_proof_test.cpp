// SPDX-License-Identifier: Apache-2.0
//
// Every pair of algorithms on every host shape of proof_test.cpp, with every count and root: there each shape
// and pair meets one of them. And on a few larger ones.
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/schedule/proofs.h"
#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

constexpr int kLargestShape = 64;

// A barrier has no elements, and the blocks of all_to_all are never divided: there some or none is all.
std::vector<std::size_t> counts_that_matter(Op op, int world) {
  if (op == Op::barrier) return {0};
  if (op == Op::all_to_all) return {0, 3};
  return counts_for(world);
}

using InnerAndOuter = std::tuple<Algorithm, Algorithm>;

class EveryShapeProof : public ::testing::TestWithParam<InnerAndOuter> {};

TEST_P(EveryShapeProof, HoldsForAllCountsAndRoots) {
  Proofs proofs;
  const auto [inner, outer] = GetParam();
  for (const std::vector<int>& hosts : host_shapes_up_to(kLargestShape)) {
    for (const Op op : kAllOps) {
      if (!supports(outer, op)) continue;
      CollectiveSpec spec = hierarchical_spec(op, hosts, inner, outer);
      for (const std::size_t count : counts_that_matter(op, spec.world)) {
        spec.count = count;
        proofs.prove_with_roots(spec);
      }
    }
  }
}

// Beyond what is proved before it runs.
TEST_P(EveryShapeProof, HoldsForLargeWorlds) {
  Proofs proofs;
  const auto [inner, outer] = GetParam();
  for (const std::vector<int>& hosts :
       {std::vector<int>(32, 8), std::vector<int>(4, 64), std::vector<int>{100, 1, 90, 64}}) {
    for (const Op op : kAllOps) {
      if (supports(outer, op)) proofs.prove(large_spec(hierarchical_spec(op, hosts, inner, outer)));
    }
  }
}

std::string name_of_pair(const ::testing::TestParamInfo<InnerAndOuter>& info) {
  const auto [inner, outer] = info.param;
  return std::string(name_of(inner)) + "_inside_" + std::string(name_of(outer)) + "_between";
}

INSTANTIATE_TEST_SUITE_P(Every, EveryShapeProof,
                         ::testing::Combine(::testing::ValuesIn(kPartAlgorithms),
                                            ::testing::ValuesIn(kPartAlgorithms)),
                         name_of_pair);

}  // namespace
}  // namespace lockstep::schedule::testing
