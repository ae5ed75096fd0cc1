// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/replicas.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/hash.h"
#include "lockstep/train/agreement.h"

namespace lockstep::train {
namespace {

// As Copy::what.
constexpr std::int64_t kWeights = 0;
constexpr std::int64_t kFirstShare = 1;

// Half of a hash is enough to tell apart what nobody has made alike on purpose.
std::int64_t half_of(const Hasher& hasher) {
  return static_cast<std::int64_t>(hasher.value().low);
}

// Of all that this rank computes with.
std::int64_t hash_of_weights(const Holding& holding, const Weights& weights) {
  Hasher hasher;
  for (const Bucket& bucket : holding.partition.buckets) {
    for (const model::Place& place : holding.layout.places()) {
      const Range both = intersection(bucket.elements, elements_of(place));
      if (!both.empty()) hasher.add(weights.working(both));
    }
  }
  return half_of(hasher);
}

// `values` gives all of a quantity of a bucket.
using ValuesOf = std::function<std::span<const float>(int quantity, std::size_t bucket)>;
std::int64_t hash_of_share(const Holding& holding, const Weights& weights, const ValuesOf& values) {
  Hasher hasher;
  for (std::size_t bucket = 0; bucket < holding.partition.buckets.size(); ++bucket) {
    for (int quantity = 0; quantity < weights.quantities(); ++quantity) {
      hasher.add(std::as_bytes(values(quantity, bucket)));
    }
  }
  return half_of(hasher);
}

std::int64_t hash_of_own_share(const Holding& holding, const Weights& weights) {
  std::vector<float> memory;
  return hash_of_share(holding, weights, [&](int quantity, std::size_t bucket) {
    memory.resize(holding.partition.own[bucket].size());
    weights.copy_quantity(quantity, bucket, {0, memory.size()}, memory);
    return std::span<const float>(memory);
  });
}

// One that more than half of them are; none when there is no such.
std::optional<std::int64_t> majority(const std::vector<Copy>& copies) {
  std::map<std::int64_t, std::size_t> counts;
  for (const Copy& copy : copies) {
    if (2 * ++counts[copy.hash] > copies.size()) return copy.hash;
  }
  return std::nullopt;
}

// What this rank has that others may have too, as pairs of Copy::what and Copy::hash: its weights, its share
// and what it mirrors.
std::vector<std::int64_t> copies_here(const Holding& holding, const Weights& weights, const Mirror* mirror) {
  std::vector<std::int64_t> copies;
  const auto add = [&](std::int64_t what, std::int64_t hash) { copies.insert(copies.end(), {what, hash}); };
  if (!holding.shards_weights) add(kWeights, hash_of_weights(holding, weights));
  if (weights.is_on_disk()) return copies;          // whose reading would take longer than a step
  if (weights.journal() != nullptr) return copies;  // which says what a share has to be
  const Rank share = holding.partition.shards_update ? holding.groups.sharing.rank() : 0;
  add(kFirstShare + share, hash_of_own_share(holding, weights));
  if (mirror == nullptr) return copies;
  for (const MirroredShare& mirrored : mirror->copies()) {
    add(kFirstShare + mirrored.owner(),
        hash_of_share(holding, weights,
                      [&](int quantity, std::size_t bucket) { return mirrored.of(quantity, bucket); }));
  }
  return copies;
}

enum Verdict : std::int64_t { is_right, is_wrong, is_undecided, is_changed };

bool has(const std::vector<Rank>& ranks, Rank rank) {
  return std::ranges::binary_search(ranks, rank);
}

}  // namespace

WrongCopies find_wrong(std::span<const Copy> copies) {
  std::map<std::int64_t, std::vector<Copy>> by_what;
  for (const Copy& copy : copies) by_what[copy.what].push_back(copy);
  std::set<Rank> wrong;
  for (const auto& [what, same] : by_what) {
    const std::optional<std::int64_t> most = majority(same);
    for (const Copy& copy : same) {
      if (most && copy.hash != *most) wrong.insert(copy.rank);
    }
  }
  // What a wrong rank says explains why copies differ; it is no voice any more.
  std::set<Rank> undecided;
  for (auto& [what, same] : by_what) {
    std::erase_if(same, [&](const Copy& copy) { return wrong.contains(copy.rank); });
    const bool differ =
        std::ranges::any_of(same, [&](const Copy& copy) { return copy.hash != same[0].hash; });
    for (const Copy& copy : same) {
      if (differ) undecided.insert(copy.rank);
    }
  }
  return {{wrong.begin(), wrong.end()}, {undecided.begin(), undecided.end()}};
}

namespace {

Verdict verdict_on(Rank rank, std::span<const Copy> copies) {
  const auto [wrong, undecided] = find_wrong(copies);
  if (has(wrong, rank)) return is_wrong;
  return has(undecided, rank) ? is_undecided : is_right;
}

// Of all ranks that hold the same part of the model.
Verdict verdict_here(const Holding& holding, const Weights& weights, const Mirror* mirror) {
  const comm::Communicator& data = holding.groups.data;
  std::vector<Copy> copies;
  const auto by_rank = gathered_lists(copies_here(holding, weights, mirror), data);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (std::size_t i = 0; i < by_rank[rank].size(); i += 2) {
      copies.push_back({by_rank[rank][i], static_cast<Rank>(rank), by_rank[rank][i + 1]});
    }
  }
  const Verdict verdict = verdict_on(data.rank(), copies);
  return verdict == is_right && !weights.are_intact() ? is_changed : verdict;
}

// What follows from this rank's verdict and those of the others.
void require_right(Verdict mine, const comm::Communicator& world, std::int64_t step) {
  std::vector<Rank> wrong;
  std::vector<Rank> undecided;
  std::vector<Rank> changed;
  try {
    const auto verdicts = gathered_lists(std::vector{std::int64_t{mine}}, world);
    for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
      if (verdicts[rank].front() == is_wrong) wrong.push_back(static_cast<Rank>(rank));
      if (verdicts[rank].front() == is_undecided) undecided.push_back(static_cast<Rank>(rank));
      if (verdicts[rank].front() == is_changed) changed.push_back(static_cast<Rank>(rank));
    }
  } catch (const CommError&) {
    // Somebody is lost: what is wrong here must not be given to whoever comes.
    if (mine == is_right) throw;
    throw CorruptState(
        fmt::format("after step {} the weights of this rank are not what they have to be", step));
  }
  if (wrong.empty() && undecided.empty() && changed.empty()) return;
  part(world);
  std::vector<std::string> parts;
  if (!wrong.empty()) {
    parts.push_back(
        fmt::format("the weights of rank {} are not those of the other ranks", fmt::join(wrong, ", ")));
  }
  if (!undecided.empty()) {
    parts.push_back(
        fmt::format("ranks {} have different copies of the same weights, and nobody knows which are right",
                    fmt::join(undecided, ", ")));
  }
  if (!changed.empty()) {
    parts.push_back(fmt::format("a bit of the state of rank {} has changed since it was updated",
                                fmt::join(changed, ", ")));
  }
  const std::string what = fmt::format("after step {} {}", step, fmt::join(parts, "; "));
  if (mine != is_right) throw CorruptState(what);
  throw CommError(what);
}

std::vector<std::int64_t> hashes_of_pieces(const KeptState& kept) {
  std::vector<std::int64_t> hashes;
  for (std::size_t piece = 0; piece < kept.pieces().size(); ++piece) {
    Hasher hasher;
    hasher.add(std::as_bytes(kept.values_of(piece)));
    hashes.push_back(half_of(hasher));
  }
  return hashes;
}

}  // namespace

void require_equal_copies(const Holding& holding, const Weights& weights, const Mirror* mirror,
                          std::int64_t step) {
  require_right(verdict_here(holding, weights, mirror), holding.groups.world, step);
}

void require_equal_pieces(const KeptState& kept, std::span<const elastic::Kept> all_kept, std::int64_t step,
                          const comm::Communicator& world) {
  const auto hashes = gathered_lists(hashes_of_pieces(kept), world);
  std::map<elastic::PieceNumbers, std::int64_t> numbers;
  std::vector<Copy> copies;
  for (std::size_t rank = 0; rank < all_kept.size(); ++rank) {
    if (all_kept[rank].step != step) continue;
    for (std::size_t i = 0; i < hashes[rank].size(); ++i) {
      const auto next = static_cast<std::int64_t>(numbers.size());
      const auto known = numbers.try_emplace(elastic::numbers_of(all_kept[rank].pieces[i]), next).first;
      copies.push_back({known->second, static_cast<Rank>(rank), hashes[rank][i]});
    }
  }
  require_right(verdict_on(world.rank(), copies), world, step);
}

}  // namespace lockstep::train
