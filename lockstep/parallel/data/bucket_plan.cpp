// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/data/bucket_plan.h"

#include <map>
#include <utility>

namespace lockstep::parallel {
namespace {

struct Open {
  std::vector<std::size_t> parameters;
  std::size_t bytes = 0;
};

}  // namespace

BucketPlan plan_buckets(std::span<const GradientSize> gradients, std::span<const std::size_t> order,
                        std::size_t bucket_bytes) {
  std::map<DType, Open> open;
  std::map<std::size_t, std::vector<std::size_t>> closed;  // by the place in `order` of the last parameter
  std::map<DType, std::size_t> last;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const GradientSize& gradient = gradients[order[place]];
    Open& bucket = open[gradient.dtype];
    bucket.parameters.push_back(order[place]);
    bucket.bytes += gradient.bytes;
    last[gradient.dtype] = place;
    if (bucket.bytes >= bucket_bytes) closed[place] = std::exchange(bucket, {}).parameters;
  }
  for (auto& [dtype, bucket] : open) {
    if (!bucket.parameters.empty()) closed[last[dtype]] = std::move(bucket.parameters);
  }
  BucketPlan plan;
  for (auto& [place, parameters] : closed) plan.push_back(std::move(parameters));
  return plan;
}

}  // namespace lockstep::parallel
