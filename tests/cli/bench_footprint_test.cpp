// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/footprint.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/comm/algorithm_name.h"
#include "lockstep/schedule/collective/generate.h"

namespace lockstep::cli {
namespace {

using schedule::Op;

constexpr std::size_t kGiB = std::size_t{1} << 30;

Case of(const std::string& system, Op op, std::size_t bytes, const std::string& algorithm = "auto") {
  Case what;
  what.system = system;
  what.op = op;
  what.bytes = bytes;
  what.algorithm = algorithm;
  return what;
}

TEST(BenchFootprint, CountsTheBuffersOfAllRanks) {
  EXPECT_EQ(footprint(of("lockstep", Op::all_reduce, 100), 4), 400U);
  EXPECT_EQ(footprint(of("lockstep", Op::all_reduce, 100, "one_shot"), 4), 1600U);
  EXPECT_EQ(footprint(of("lockstep", Op::all_to_all, 100), 4), 800U);
  EXPECT_EQ(footprint(of("lockstep", Op::barrier, 0), 4), 0U);
  EXPECT_EQ(footprint(of("gloo", Op::all_reduce, 100), 4), 400U);
  EXPECT_EQ(footprint(of("memcpy", Op::all_reduce, 100), 4), 800U);
  EXPECT_EQ(footprint(of("mpi", Op::all_reduce, 100), 4), 800U);
}

TEST(BenchFootprint, CountsEveryLane) {
  Case lanes = of("lockstep", Op::all_reduce, 100, "lanes");
  lanes.lanes = {1, 3, 0, 4};
  EXPECT_EQ(footprint(lanes, 4), 900U);  // a rank without lanes has a buffer for the result
  lanes.algorithm = "ring";
  EXPECT_EQ(footprint(lanes, 4), 900U);
}

// Of all ranks together, as comm/scratch_pool.h has them.
std::size_t elements_of(const schedule::CollectiveSpec& spec) {
  std::size_t elements = 0;
  for (Rank rank = 0; rank < spec.world; ++rank) {
    const schedule::Program program = schedule::generate(spec, rank);
    for (std::size_t i = 0; i < program.buffer_elements.size(); ++i) {
      const std::size_t buffer = program.buffer_elements[i];
      elements += i < program.scratch_from ? buffer : std::bit_ceil(buffer);
    }
  }
  return elements;
}

schedule::CollectiveSpec all_to_all(const std::string& algorithm, int ranks) {
  const comm::AlgorithmName name = comm::parse_algorithm_name(algorithm);
  schedule::CollectiveSpec spec;
  spec.op = Op::all_to_all;
  spec.algorithm = name.algorithm;
  spec.inner = name.inner;
  spec.outer = name.outer;
  spec.world = ranks;
  spec.count = 4;
  spec.grid = schedule::squarest_grid(ranks, true);
  return spec;
}

TEST(BenchFootprint, CountsBlocksThatPassOtherRanks) {
  for (const std::string algorithm : {"ring", "tree", "halving_doubling", "direct", "one_shot", "mesh"}) {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 33, 64}) {
      const schedule::CollectiveSpec spec = all_to_all(algorithm, ranks);
      const auto bytes = spec.count * static_cast<std::size_t>(ranks);
      EXPECT_LE(elements_of(spec), footprint(of("lockstep", Op::all_to_all, bytes, algorithm), ranks))
          << algorithm << " on " << ranks;
    }
  }
}

TEST(BenchFootprint, CountsBlocksThatPassBetweenHosts) {
  for (const std::string inner : {"ring", "direct", "halving_doubling", "mesh", "tree"}) {
    for (const std::string outer : {"direct", "ring", "halving_doubling", "tree"}) {
      for (const std::vector<int>& hosts :
           {std::vector<int>{2, 2}, {1, 3}, {3, 1}, {1, 1, 2}, {4, 4, 4, 4}, {1, 7}, {8, 1, 1}, {5, 6, 7}}) {
        const std::string algorithm = "hierarchical(" + inner + "," + outer + ")";
        const int ranks = std::accumulate(hosts.begin(), hosts.end(), 0);
        schedule::CollectiveSpec spec = all_to_all(algorithm, ranks);
        spec.ranks_per_host = hosts;
        const auto bytes = spec.count * static_cast<std::size_t>(ranks);
        EXPECT_LE(elements_of(spec), footprint(of("lockstep", Op::all_to_all, bytes, algorithm), ranks))
            << algorithm << " on " << testing::PrintToString(hosts);
      }
    }
  }
}

TEST(BenchFootprint, RefusesWhatDoesNotFitAndNamesWhatDoes) {
  const std::vector<Case> cases = {of("lockstep", Op::all_reduce, 20 * kGiB),
                                   of("memcpy", Op::all_reduce, 20 * kGiB)};
  EXPECT_NO_THROW(require_memory(cases, 2, 134 * kGiB));
  try {
    require_memory(cases, 2, 10 * kGiB);
    FAIL() << "it was not refused";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--bytes 20G needs 120.0 GiB for the buffers of 2 ranks, but 10.0 GiB of memory are free: "
                 "the largest "
                 "that fits is --bytes 1536M");
  }
}

TEST(BenchFootprint, WhatItProposesFits) {
  for (const int ranks : {1, 2, 3, 7, 1024}) {
    for (const std::size_t usable : {std::size_t{1} << 16, std::size_t{1} << 20, kGiB, 23 * kGiB + 12345}) {
      const std::string refusal = [&] {
        try {
          require_memory(std::vector<Case>{of("lockstep", Op::all_to_all, 64 * kGiB)}, ranks, usable);
        } catch (const UsageError& error) {
          return std::string(error.what());
        }
        return std::string();
      }();
      const std::string proposed = refusal.substr(refusal.rfind(' ') + 1);
      const std::size_t bytes = parse_sizes(proposed).front();
      EXPECT_EQ(bytes % static_cast<std::size_t>(8 * ranks), 0U) << refusal;
      EXPECT_NO_THROW(require_memory(std::vector<Case>{of("lockstep", Op::all_to_all, bytes)}, ranks, usable))
          << refusal;
    }
  }
}

}  // namespace
}  // namespace lockstep::cli
