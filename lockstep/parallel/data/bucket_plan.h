// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/base/dtype.h"

namespace lockstep::parallel {

// By bucket: the parameters whose gradients are reduced together, in the order they lie in memory.
using BucketPlan = std::vector<std::vector<std::size_t>>;

struct GradientSize {
  DType dtype = DType::fp32;
  std::size_t bytes = 0;
};

// Cuts gradients into buckets of one dtype. `order` lists every parameter once, in the order in which
// backward finishes them; a bucket is closed when it holds `bucket_bytes`, and buckets come in the order in
// which they are complete. A pure function: all ranks cut alike.
BucketPlan plan_buckets(std::span<const GradientSize> gradients, std::span<const std::size_t> order,
                        std::size_t bucket_bytes);

}  // namespace lockstep::parallel
