// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/buckets.h"

#include <algorithm>
#include <limits>

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

}  // namespace

std::vector<Bucket> cut_into_buckets(const model::FlatLayout& layout, std::int64_t elements) {
  const std::vector<int> blocks = last_to_add(layout);
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const model::Place& place = layout.places()[i];
    if (buckets.empty() || buckets.back().count >= elements) {
      buckets.push_back({.first = place.first, .count = 0, .block = std::numeric_limits<int>::max()});
    }
    Bucket& bucket = buckets.back();
    bucket.count += place.count;
    bucket.block = std::min(bucket.block, blocks[i]);
  }
  return buckets;
}

}  // namespace lockstep::train
