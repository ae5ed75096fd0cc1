// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/check_options.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/algorithm_name.h"
#include "lockstep/mesh/lanes.h"

namespace lockstep::cli {
namespace {

using schedule::Algorithm;
using schedule::Op;

std::string list(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

bool sums(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter;
}

bool can_do(const std::string& algorithm, Op op) {
  if (algorithm == "auto") return true;
  if (algorithm == "lanes") return sums(op);
  const comm::AlgorithmName name = comm::parse_algorithm_name(algorithm);
  const bool outer_can = name.algorithm != Algorithm::hierarchical || schedule::supports(name.outer, op);
  return outer_can && schedule::supports(name.algorithm, op);
}

void check_hosts(const Site& site) {
  if (site.ranks_per_host.empty()) return;
  const int placed = std::accumulate(site.ranks_per_host.begin(), site.ranks_per_host.end(), 0);
  if (placed != site.ranks) {
    throw UsageError(fmt::format("--ranks-per-host {} places {} ranks, but --ranks is {}",
                                 list(site.ranks_per_host), placed, site.ranks));
  }
  if (site.transport != "auto" && site.transport != "loopback") {
    throw UsageError(
        fmt::format("--ranks-per-host needs shm inside hosts and tcp between them: leave out --transport {}",
                    site.transport));
  }
}

// A hierarchy on one level is one of its parts under a name that promises both.
void check_levels(const std::string& algorithm, const Site& site) {
  const comm::Topology topology = topology_of(site);
  if (topology.has_two_levels()) return;
  const char* where =
      topology.ranks_per_host().size() == 1 ? "all ranks are on one host" : "every rank is alone on its host";
  throw UsageError(fmt::format(
      "--algorithm {} has nothing to compose, because {}: place 4 ranks on two hosts, for example, "
      "with --ranks 4 --ranks-per-host 2,2",
      algorithm, where));
}

void check_algorithm(const std::string& algorithm, const BenchOptions& options) {
  for (const Op op : options.ops) {
    if (!can_do(algorithm, op))
      throw UsageError(fmt::format("--algorithm {} cannot do {}", algorithm, name_of(op)));
  }
  if (algorithm == "lanes" || algorithm == "auto") return;
  const comm::AlgorithmName name = comm::parse_algorithm_name(algorithm);
  if (name.algorithm == Algorithm::hierarchical) check_levels(algorithm, options.site);
  if (options.exactness == Exactness::exact && !comm::is_exact(name, topology_of(options.site))) {
    throw UsageError(fmt::format(
        "--algorithm {} does not add in the order that --exact true asks for{}: leave --exact out or choose "
        "direct, halving_doubling or one_shot",
        algorithm, name.algorithm == Algorithm::hierarchical ? " on these hosts" : ""));
  }
}

void check_lanes_of_ranks(const BenchOptions& options) {
  const int ranks = options.site.ranks;
  const int total = std::accumulate(options.lanes.begin(), options.lanes.end(), 0);
  if (options.lanes.size() != static_cast<std::size_t>(ranks)) {
    throw UsageError(fmt::format("--lanes {} is for {} ranks, but --ranks is {}", list(options.lanes),
                                 options.lanes.size(), ranks));
  }
  if (total > kMaxBenchLanes || !std::has_single_bit(static_cast<unsigned>(total))) {
    throw UsageError(
        fmt::format("--lanes {} are {} lanes together: the lane tree needs a power of two, at most {}",
                    list(options.lanes), total, kMaxBenchLanes));
  }
}

void check_lanes(const BenchOptions& options) {
  const auto& algorithms = options.algorithms;
  const int ranks = options.site.ranks;
  if (options.lanes.empty()) {
    const bool wanted = std::ranges::find(algorithms, "lanes") != algorithms.end();
    if (!wanted || std::has_single_bit(static_cast<unsigned>(ranks))) return;
    std::vector<int> lanes;
    const LaneOwnership even = even_ownership(round_up_to_power_of_two(ranks), ranks);
    for (Rank rank = 0; rank < ranks; ++rank) lanes.push_back(even.count_of(rank));
    throw UsageError(
        fmt::format("--algorithm lanes needs a power of two of lanes, and {} ranks with one each are none: "
                    "say how many each rank owns, as in --lanes {}",
                    ranks, list(lanes)));
  }
  check_lanes_of_ranks(options);
  if (!std::ranges::all_of(options.ops, sums))
    throw UsageError("--lanes is for sums, all_reduce and reduce_scatter: leave out other operations");
  if (options.tune || !options.against.empty())
    throw UsageError("--lanes asks for sums that only lockstep makes: leave out --against and --tune");
  if (options.exactness == Exactness::exact && algorithms != std::vector<std::string>{"lanes"})
    throw UsageError("--exact true with --lanes asks for the order that only --algorithm lanes adds in");
}

void check_opponents(const BenchOptions& options) {
  const bool only_all_reduce = options.ops == std::vector<Op>{Op::all_reduce};
  for (const std::string& opponent : options.against) {
    if ((opponent == "gloo" || opponent == "mpi") && !only_all_reduce) {
      throw UsageError(fmt::format(
          "--against {} is measured in all_reduce only: leave it out for other operations", opponent));
    }
  }
}

}  // namespace

void check_together(const BenchOptions& options) {
  check_hosts(options.site);
  for (const std::string& algorithm : options.algorithms) check_algorithm(algorithm, options);
  check_lanes(options);
  check_opponents(options);
  if (options.tune && (!options.against.empty() || options.algorithms != std::vector<std::string>{"auto"})) {
    throw UsageError("--tune chooses what to measure by itself: leave out --algorithm and --against");
  }
  if ((options.algorithms.size() * options.registered.size()) + options.against.size() > kMaxBenchSlots) {
    throw UsageError(fmt::format("--algorithm and --against name more than {} things to measure together",
                                 kMaxBenchSlots));
  }
}

}  // namespace lockstep::cli
