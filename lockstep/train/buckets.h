// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/model/parameters.h"

namespace lockstep::train {

// A run of the flat parameters whose gradients are reduced together, and the block whose backward pass is the
// last to add to them.
struct Bucket {
  std::int64_t first = 0;
  std::int64_t count = 0;
  int block = 0;
};

// Cuts all parameters into runs of about `elements`, at the borders of parameters. Every element is in one
// bucket; they are in the order of the flat layout. A pure function: all ranks cut alike.
std::vector<Bucket> cut_into_buckets(const model::FlatLayout& layout, std::int64_t elements);

}  // namespace lockstep::train
