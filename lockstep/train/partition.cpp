// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/partition.h"

#include <algorithm>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/update/vectors.h"

namespace lockstep::train {
namespace {

// By parameter: the lowest block that uses it, whose backward pass comes last. The head alone is like the
// last block: its gradients are there before any block's.
std::vector<int> last_to_add(const model::FlatLayout& layout) {
  const int none = static_cast<int>(layout.blocks()) - 1;
  std::vector<int> blocks(layout.specs().size(), none);
  for (std::size_t block = layout.blocks(); block-- > 0;) {
    for (std::size_t parameter : layout.of_block(block)) blocks[parameter] = static_cast<int>(block);
  }
  return blocks;
}

std::size_t rounded_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Where buckets end: behind the first parameter that fills them, or the last of its chunk, rounded up. A
// parameter that fills several is cut, because memory of peers that is read in a sum counts while it goes on.
std::vector<Range> cut(const model::FlatLayout& layout, Range chunk, std::size_t elements, std::size_t unit) {
  LOCKSTEP_CHECK(chunk.begin % unit == 0, "a chunk does not begin where a bucket may");
  const std::size_t full = rounded_up(elements, unit);
  std::vector<Range> buckets;
  std::size_t begin = chunk.begin;
  std::size_t filled = chunk.begin;
  const auto close = [&](std::size_t size) {
    buckets.push_back({begin, begin + rounded_up(size, unit)});
    begin = buckets.back().end;
  };
  for (const model::Place& place : layout.places()) {
    if (!chunk.contains(elements_of(place))) continue;
    filled = elements_of(place).end;
    while (filled >= begin + 2 * full) close(full);
    if (filled >= begin + elements) close(filled - begin);
  }
  if (filled > begin) close(filled - begin);
  return buckets;
}

}  // namespace

Range elements_of(const model::Place& place) {
  return {static_cast<std::size_t>(place.first), static_cast<std::size_t>(place.first + place.count)};
}

std::size_t partition_unit(int world) {
  return static_cast<std::size_t>(world) * kernels::kSquaresBlock;
}

std::vector<std::size_t> backward_order(const model::FlatLayout& layout) {
  std::vector<int> blocks = last_to_add(layout);
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  const bool head_is_alone = blocks[layout.head()] == static_cast<int>(layout.blocks()) - 1;
  if (head_is_alone) ++blocks[layout.head()];
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a] > blocks[b]; });
  return order;
}

Partition partition_of(const model::FlatLayout& layout, const PartitionOptions& options) {
  const auto world = static_cast<std::size_t>(options.world);
  const std::vector<int> blocks = last_to_add(layout);
  Partition partition;
  partition.shards_update = options.shards_update;
  const auto add = [&](Range elements) {
    int block = static_cast<int>(layout.blocks()) - 1;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (overlap(elements, elements_of(layout.places()[i]))) block = std::min(block, blocks[i]);
    }
    const Range share = chunk_range(elements.size(), world, static_cast<std::size_t>(options.rank));
    partition.buckets.push_back({elements, block});
    partition.own.push_back(
        options.shards_update ? Range{elements.begin + share.begin, elements.begin + share.end} : elements);
    partition.elements = elements.end;
  };
  for (const Range& chunk : layout.chunks()) {
    const auto elements = static_cast<std::size_t>(options.bucket_elements);
    for (const Range& bucket : cut(layout, chunk, elements, partition_unit(options.world))) add(bucket);
  }
  return partition;
}

}  // namespace lockstep::train
