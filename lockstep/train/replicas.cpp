// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/replicas.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/hash.h"

namespace lockstep::train {
namespace {

// Of all that this rank computes with. Half of a hash is enough to tell apart what nobody has made alike on
// purpose.
std::int64_t hash_of_weights(const Holding& holding, const Weights& weights) {
  Hasher hasher;
  for (const Bucket& bucket : holding.partition.buckets) {
    for (const model::Place& place : holding.layout.places()) {
      const Range both = intersection(bucket.elements, elements_of(place));
      if (!both.empty()) hasher.add(weights.working(both));
    }
  }
  return static_cast<std::int64_t>(hasher.value().low);
}

// One that more than half of them are; none when there is no such.
std::optional<std::int64_t> majority(const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, std::size_t> counts;
  for (const std::int64_t value : values) {
    if (2 * ++counts[value] > values.size()) return value;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Rank> ranks_with_other_weights(const Holding& holding, const Weights& weights) {
  const comm::Communicator& data = holding.groups.data;
  const comm::Communicator& world = holding.groups.world;
  std::vector<std::int64_t> hashes(static_cast<std::size_t>(data.size()), 0);
  const std::int64_t mine = holding.shards_weights ? 0 : hash_of_weights(holding, weights);
  hashes[static_cast<std::size_t>(data.rank())] = mine;
  data.all_reduce(std::as_writable_bytes(std::span(hashes)), {.dtype = DType::int64});

  std::vector<std::int64_t> differs(static_cast<std::size_t>(world.size()), 0);
  differs[static_cast<std::size_t>(world.rank())] = majority(hashes) == mine ? 0 : 1;
  world.all_reduce(std::as_writable_bytes(std::span(differs)), {.dtype = DType::int64});
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < differs.size(); ++rank) {
    if (differs[rank] != 0) ranks.push_back(static_cast<Rank>(rank));
  }
  return ranks;
}

void require_equal_weights(const Holding& holding, const Weights& weights, std::int64_t step) {
  const std::vector<Rank> others = ranks_with_other_weights(holding, weights);
  if (others.empty()) return;
  const std::string what = fmt::format(
      "after step {} the weights of rank {} are not those of the other ranks", step, fmt::join(others, ", "));
  const bool is_one = std::ranges::count(others, holding.groups.world.rank()) > 0;
  if (is_one) throw CorruptWeights(what);
  throw CommError(what);
}

}  // namespace lockstep::train
