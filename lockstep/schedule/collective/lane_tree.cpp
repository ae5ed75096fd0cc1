// SPDX-License-Identifier: Apache-2.0
//
// The lane tree: direct, when ranks bring unequal numbers of lane partials. A rank first adds what it owns of
// each complete subtree, as far as it can without others, and sends that to the owner of the chunk; the owner
// adds the subtrees of all ranks in lane order. Chunks can be cut into parts, one after the other: of several
// subtrees of a rank all but the last wait in the owner's memory, and those of a part stay in its caches.
#include "lockstep/schedule/collective/lane_tree.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lockstep/schedule/collective/canonical.h"
#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

// A complete subtree of one rank: which of its buffers make it up, and how they merge.
struct OwnSubtree {
  Subtree lanes;
  std::uint32_t first_buffer = 0;
  std::vector<std::uint8_t> merges;
};

std::vector<OwnSubtree> own_subtrees(const std::vector<Subtree>& pieces) {
  std::vector<OwnSubtree> result;
  if (pieces.empty()) return result;
  std::size_t next = 0;
  for (const Subtree& lanes : complete_subtrees(pieces.front().first, pieces.back().end())) {
    const std::size_t begin = next;
    while (next < pieces.size() && pieces[next].first < lanes.end()) ++next;
    const std::span<const Subtree> inside(pieces.data() + begin, next - begin);
    result.push_back({lanes, static_cast<std::uint32_t>(begin), canonical_merges(inside)});
  }
  return result;
}

// How many parts chunks are cut into: all alike, so that the ranks go from part to part together.
std::size_t parts_of_chunks(const CollectiveSpec& spec) {
  const std::size_t largest = chunk_range(spec.count, spec.world, 0).size();
  if (spec.segment_elements == 0 || largest == 0) return 1;
  return (largest + spec.segment_elements - 1) / spec.segment_elements;
}

class LaneTree {
 public:
  LaneTree(const CollectiveSpec& spec, Rank rank)
      : spec_(spec), rank_(rank), parts_(parts_of_chunks(spec)), subtrees_(own_subtrees(spec.pieces[rank])) {}

  void add_to(Program& program) {
    for (part_ = 0; part_ < parts_; ++part_) add(program, round());
  }

 private:
  Round round() const {
    const bool returns = spec_.op == Op::all_reduce;
    const std::vector<Rank> peers = all_but(spec_.world, rank_);
    Round round;
    for (Rank peer : peers) add_sends(round, peer);
    Move own = combine_own_chunk();
    if (returns) own.send_to = peers;
    add(round, std::move(own));
    for (Rank peer : peers) {
      if (returns) add(round, receive(peer, data(chunk(peer))));
    }
    return round;
  }

  // The part of the peer's chunk that is under way.
  Range chunk(Rank peer) const {
    const Range whole = chunk_range(spec_.count, spec_.world, peer);
    const Range part = chunk_range(whole.size(), parts_, part_);
    return {whole.begin + part.begin, whole.begin + part.end};
  }

  // One message per subtree, added up in the buffer of its first piece on the way out.
  void add_sends(Round& round, Rank peer) const {
    for (const OwnSubtree& subtree : subtrees_) {
      const Slice first{.buffer = subtree.first_buffer, .range = chunk(peer)};
      Move move = send(first, {peer});
      if (subtree.merges.size() > 1) {
        move.into = first;
        move.sources = sources_of(subtree, chunk(peer));
      }
      add(round, std::move(move));
    }
  }

  static std::vector<Source> sources_of(const OwnSubtree& subtree, Range range) {
    std::vector<Source> sources;
    std::uint32_t buffer = subtree.first_buffer;
    for (std::uint8_t merges : subtree.merges) sources.push_back(local({buffer++, range}, merges));
    return sources;
  }

  // Own pieces enter one by one, those of others as the complete subtrees that they send.
  Move combine_own_chunk() const {
    std::vector<Subtree> operands;
    Move move{.sources = {}, .into = data(chunk(rank_)), .send_to = {}, .finish = true};
    for (Rank peer = 0; peer < spec_.world; ++peer) {
      const std::vector<Subtree>& pieces = spec_.pieces[peer];
      if (peer == rank_) {
        for (std::uint32_t buffer = 0; buffer < pieces.size(); ++buffer) {
          operands.push_back(pieces[buffer]);
          move.sources.push_back(local({buffer, chunk(rank_)}));
        }
      } else if (!pieces.empty()) {
        for (const Subtree& lanes : complete_subtrees(pieces.front().first, pieces.back().end())) {
          operands.push_back(lanes);
          move.sources.push_back(message(peer));
        }
      }
    }
    const std::vector<std::uint8_t> merges = canonical_merges(operands);
    for (std::size_t i = 0; i < merges.size(); ++i) move.sources[i].merges = merges[i];
    return move;
  }

  const CollectiveSpec& spec_;
  Rank rank_;
  std::size_t parts_;
  std::size_t part_ = 0;
  std::vector<OwnSubtree> subtrees_;
};

}  // namespace

Program generate_lane_tree(const CollectiveSpec& spec, Rank rank) {
  const std::size_t buffers = std::max<std::size_t>(1, spec.pieces[rank].size());
  Program program{.rank = rank,
                  .world = spec.world,
                  .buffer_elements = std::vector(buffers, spec.count),
                  .scratch_from = static_cast<std::uint32_t>(buffers),
                  .rounds = {}};
  LaneTree(spec, rank).add_to(program);
  return program;
}

PredictedCost lane_tree_cost(const CollectiveSpec& spec) {
  const bool returns = spec.op == Op::all_reduce;
  const std::size_t peers = spec.world - 1;
  PredictedCost cost;
  std::size_t pieces = 0;
  bool contributes = false;  // does anyone have anything for the owner of another chunk?
  bool has_result = false;   // does anyone make a result that others want?
  for (Rank rank = 0; rank < spec.world; ++rank) {
    const std::size_t own = chunk_range(spec.count, spec.world, rank).size();
    const std::size_t subtrees = own_subtrees(spec.pieces[rank]).size();
    cost.elements_sent.push_back(subtrees * (spec.count - own) + (returns ? peers * own : 0));
    pieces += spec.pieces[rank].size();
    contributes = contributes || subtrees * (spec.count - own) > 0;
    has_result = has_result || (returns && peers * own > 0);
  }
  cost.elements_combined = (pieces - 1) * spec.count;
  const auto parts = static_cast<int>(parts_of_chunks(spec));
  cost.depth = parts * ((contributes ? 1 : 0) + (has_result ? 1 : 0));
  cost.depth_is_bound = parts > 1;  // the last part may lack a chunk, and with it messages
  return cost;
}

}  // namespace lockstep::schedule
