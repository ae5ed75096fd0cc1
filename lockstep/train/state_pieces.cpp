// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/state_pieces.h"

#include "lockstep/parallel/tensor/shards.h"

namespace lockstep::train {
namespace {

// Of this rank's share of a bucket: what it writes, because others have the same share.
Range written_of(const Holding& holding, Range own) {
  const comm::Communicator& alike =
      holding.partition.shards_update ? holding.groups.copies : holding.groups.data;
  const Range part =
      chunk_range(own.size(), static_cast<std::size_t>(alike.size()), static_cast<std::size_t>(alike.rank()));
  return {own.begin + part.begin, own.begin + part.end};
}

// Those of the elements `which` of a share of a bucket.
void add_pieces(std::vector<StatePiece>& pieces, const Holding& holding, std::size_t bucket, Range share,
                Range which) {
  const model::FlatLayout& layout = holding.layout;
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    const Range place = elements_of(layout.places()[i]);
    const Range both = intersection(which, place);
    if (both.empty()) continue;
    const parallel::LaneShard shard = holding.shard(i);
    if (holding.tensor != nullptr && shard.sharing.first != layout.lane_of(i)) continue;
    std::size_t begin = both.begin - share.begin;
    for (const Runs& runs : runs_of(shard, {both.begin - place.begin, both.end - place.begin})) {
      pieces.push_back({.parameter = layout.specs()[i].name,
                        .bucket = bucket,
                        .share = {begin, begin + runs.size()},
                        .in_parameter = runs});
      begin += runs.size();
    }
  }
}

void add_parts(std::vector<HeldPart>& parts, const Holding& holding, std::size_t parameter, Range elements) {
  const Range place = elements_of(holding.layout.places()[parameter]);
  const Range both = intersection(elements, place);
  if (!both.empty()) parts.push_back({parameter, {both.begin - place.begin, both.end - place.begin}});
}

}  // namespace

std::vector<StatePiece> pieces_to_write(const Holding& holding) {
  std::vector<StatePiece> pieces;
  for (std::size_t bucket = 0; bucket < holding.partition.own.size(); ++bucket) {
    const Range own = holding.partition.own[bucket];
    add_pieces(pieces, holding, bucket, own, written_of(holding, own));
  }
  return pieces;
}

std::vector<StatePiece> pieces_of(const Holding& holding, std::span<const Range> own) {
  std::vector<StatePiece> pieces;
  for (std::size_t bucket = 0; bucket < own.size(); ++bucket) {
    add_pieces(pieces, holding, bucket, own[bucket], own[bucket]);
  }
  return pieces;
}

std::vector<HeldPart> parts_with_moments(const Holding& holding) {
  std::vector<HeldPart> parts;
  for (const Range& own : holding.partition.own) {
    for (std::size_t i = 0; i < holding.layout.specs().size(); ++i) add_parts(parts, holding, i, own);
  }
  return parts;
}

std::vector<HeldPart> parts_with_values(const Holding& holding) {
  if (!holding.shards_weights) {
    std::vector<HeldPart> parts;
    for (std::size_t i = 0; i < holding.layout.specs().size(); ++i) {
      add_parts(parts, holding, i, {0, static_cast<std::size_t>(holding.layout.elements())});
    }
    return parts;
  }
  std::vector<HeldPart> parts = parts_with_moments(holding);
  const Range borrowed = {0, holding.layout.owned().begin};
  for (std::size_t i = 0; i < holding.layout.specs().size(); ++i) add_parts(parts, holding, i, borrowed);
  return parts;
}

}  // namespace lockstep::train
