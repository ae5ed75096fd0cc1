// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/collective.h"

#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/suggest.h"
#include "lockstep/schedule/collective/canonical.h"

namespace lockstep::schedule {
namespace {

constexpr std::array<std::pair<Op, std::string_view>, 7> kOps = {{{Op::all_reduce, "all_reduce"},
                                                                  {Op::reduce_scatter, "reduce_scatter"},
                                                                  {Op::all_gather, "all_gather"},
                                                                  {Op::broadcast, "broadcast"},
                                                                  {Op::reduce, "reduce"},
                                                                  {Op::all_to_all, "all_to_all"},
                                                                  {Op::barrier, "barrier"}}};

constexpr std::array<std::pair<Algorithm, std::string_view>, 7> kAlgorithms = {
    {{Algorithm::ring, "ring"},
     {Algorithm::tree, "tree"},
     {Algorithm::halving_doubling, "halving_doubling"},
     {Algorithm::direct, "direct"},
     {Algorithm::one_shot, "one_shot"},
     {Algorithm::mesh, "mesh"},
     {Algorithm::hierarchical, "hierarchical"}}};

template <typename Table, typename Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename Table>
auto parse_in(const Table& table, std::string_view kind, std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, name] : table) {
    if (name == text) return value;
    known.emplace_back(name);
  }
  refuse_name(kind, text, known);
}

int sum_of(std::span<const int> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0);
}

// A tree over hosts cannot split one: it is the canonical tree over their ranks if both split at the same
// rank, all the way down to single hosts.
bool splits_between_hosts(std::span<const int> ranks_per_host) {
  if (ranks_per_host.size() <= 1) return true;
  const auto left = ranks_per_host.first(
      static_cast<std::size_t>(canonical_split(static_cast<int>(ranks_per_host.size()))));
  const auto right = ranks_per_host.subspan(left.size());
  return sum_of(left) == canonical_split(sum_of(ranks_per_host)) && splits_between_hosts(left) &&
         splits_between_hosts(right);
}

}  // namespace

std::string_view name_of(Op op) {
  return name_in(kOps, op);
}

std::string_view name_of(Algorithm algorithm) {
  return name_in(kAlgorithms, algorithm);
}

Op parse_op(std::string_view name) {
  return parse_in(kOps, "operation", name);
}

Algorithm parse_algorithm(std::string_view name) {
  return parse_in(kAlgorithms, "algorithm", name);
}

Algorithm parse_level_algorithm(std::string_view name) {
  std::vector<std::pair<Algorithm, std::string_view>> of_one_level;
  for (const auto& one : kAlgorithms) {
    if (one.first != Algorithm::hierarchical) of_one_level.push_back(one);
  }
  return parse_in(of_one_level, "algorithm", name);
}

GridShape squarest_grid(int world, bool torus) {
  int rows = 1;
  for (int divisor = 1; divisor * divisor <= world; ++divisor) {
    if (world % divisor == 0) rows = divisor;
  }
  return {.rows = rows, .columns = world / rows, .torus = torus};
}

bool supports(Algorithm algorithm, Op op) {
  // Its ranks would have to send all elements to the one rank that needs a chunk of them.
  return algorithm != Algorithm::one_shot || op != Op::reduce_scatter;
}

bool is_exact(Algorithm algorithm) {
  return algorithm == Algorithm::halving_doubling || algorithm == Algorithm::direct ||
         algorithm == Algorithm::one_shot;
}

bool is_exact(const CollectiveSpec& spec) {
  if (spec.algorithm != Algorithm::hierarchical) return is_exact(spec.algorithm);
  return is_exact(spec.inner) && is_exact(spec.outer) && splits_between_hosts(spec.ranks_per_host);
}

}  // namespace lockstep::schedule
