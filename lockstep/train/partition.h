// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/mesh/range.h"
#include "lockstep/model/parameters.h"
#include "lockstep/plan/buckets.h"

namespace lockstep::train {

// A parameter's elements of the flat parameters.
Range elements_of(const model::Place& place);

// The parameters as the way back comes to them: the head's own, then those of the last block and so on; one
// that several use is where it is used last.
std::vector<std::size_t> backward_order(const model::FlatLayout& layout);

// A run of the flat parameters whose gradients are reduced together, and the block whose backward pass is the
// last to add to them.
struct Bucket {
  Range elements;
  int block = 0;
};

struct PartitionOptions {
  std::int64_t bucket_elements = plan::kBucketElements;  // about
  int world = 1;
  Rank rank = 0;
  bool shards_update = false;  // each rank updates its share of every bucket, instead of all of it
};

// How the flat parameters are cut for a step. A borrowed head is not part of it.
struct Partition {
  std::vector<Bucket> buckets;  // in order; every owned element is in one, with others of its chunk only
  std::vector<Range> own;       // by bucket: the flat elements that this rank updates
  std::size_t elements = 0;     // of flat buffers: those of the layout, and what fills up the last bucket
  bool shards_update = false;
};

// Buckets, and so chunks of the layout, begin at multiples of this: shares of buckets then begin and end
// where blocks of squares do, and the norm of all gradients does not depend on who holds which share.
std::size_t partition_unit(int world);

// A pure function: all ranks cut alike.
Partition partition_of(const model::FlatLayout& layout, const PartitionOptions& options);

}  // namespace lockstep::train
