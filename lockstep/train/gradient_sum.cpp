// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gradient_sum.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/select.h"

namespace lockstep::train {
namespace {

comm::LanePieces pieces_of(const LaneOwnership& lanes) {
  comm::LanePieces pieces;
  for (Rank rank = 0; rank < lanes.world(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    pieces.push_back(complete_subtrees(lanes.first_lane[r], lanes.first_lane[r + 1]));
  }
  return pieces;
}

// Equal subtrees, one of each rank: the canonical tree over the ranks is then the upper part of the lane
// tree.
bool is_one_subtree_each(const comm::LanePieces& pieces) {
  return std::ranges::all_of(pieces, [&](const auto& of_rank) {
    return of_rank.size() == 1 && of_rank.front().count == pieces.front().front().count;
  });
}

bool is_summed_by_rank(const comm::LanePieces& pieces, const SumOptions& options) {
  return !options.exact || is_one_subtree_each(pieces);
}

}  // namespace

void require_order(const LaneOwnership& lanes, const SumOptions& options) {
  const bool knows_lanes = !options.algorithm || *options.algorithm == comm::Algorithm::direct;
  if (knows_lanes || is_summed_by_rank(pieces_of(lanes), options)) return;
  throw UsageError(fmt::format(
      "comm.all_reduce = \"{}\" keeps the order of the lanes only when every worker owns as many of them, "
      "a power of two; use \"direct\", other parallelism.lanes, or comm.exact = false",
      schedule::name_of(*options.algorithm)));
}

void require_hosts_in_order(const std::vector<int>& hosts, const SumOptions& options) {
  const bool is_hierarchy = options.algorithm == comm::Algorithm::hierarchical;
  if (!is_hierarchy || !comm::Topology{hosts}.is_scattered()) return;
  throw UsageError(
      "comm.all_reduce = \"hierarchical\" needs the workers of a host to follow one another, but here others "
      "stand between them: number them host by host, or use \"auto\"");
}

GradientSum::GradientSum(const comm::Communicator& communicator, const LaneOwnership& lanes, bool scatters,
                         const SumOptions& options)
    : communicator_(communicator),
      pieces_(pieces_of(lanes)),
      scatters_(scatters),
      options_(options),
      by_rank_(is_summed_by_rank(pieces_, options)) {
  require_order(lanes, options);
}

comm::Work GradientSum::start(std::span<const Bytes> partials, Bytes result) const {
  if (!by_rank_) {
    const std::span<const Bytes> given = partials.empty() ? std::span<const Bytes>(&result, 1) : partials;
    return scatters_ ? communicator_.reduce_scatter_lanes_async(given, pieces_)
                     : communicator_.all_reduce_lanes_async(given, pieces_);
  }
  if (partials.empty()) std::memset(result.data(), 0, result.size());
  const comm::Options options = {.algorithm = options_.algorithm, .exact = options_.exact};
  const bool can_scatter =
      !options.algorithm || schedule::supports(*options.algorithm, schedule::Op::reduce_scatter);
  return scatters_ && can_scatter ? communicator_.reduce_scatter_async(result, options)
                                  : communicator_.all_reduce_async(result, options);
}

}  // namespace lockstep::train
