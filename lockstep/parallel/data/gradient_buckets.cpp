// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/data/gradient_buckets.h"

#include <cstring>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::parallel {
namespace {

constexpr std::size_t kAlignment = 64;  // bytes, of every gradient: one cache line, any vector

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::vector<std::int64_t> row_major_strides(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

// With the strides of its parameter, as optimizers like it best. Not a view in the sense of autograd, because
// Optimizer::zero_grad() refuses those.
at::Tensor tensor_at(std::byte* memory, const at::Tensor& parameter,
                     const std::shared_ptr<comm::Buffer>& owner) {
  const std::vector<std::int64_t> strides = parameter.is_non_overlapping_and_dense()
                                                ? parameter.strides().vec()
                                                : row_major_strides(parameter.sizes());
  return at::from_blob(
      memory, parameter.sizes(), strides, [owner](void*) {}, parameter.options());
}

}  // namespace

GradientBuckets::GradientBuckets(comm::Communicator group, std::vector<at::Tensor> parameters,
                                 BucketPlan plan, std::optional<bool> exact)
    : group_(std::move(group)),
      parameters_(std::move(parameters)),
      plan_(std::move(plan)),
      exact_(exact),
      places_(parameters_.size()),
      bucket_of_(parameters_.size()) {
  for (const std::vector<std::size_t>& bucket : plan_) buckets_.push_back(make_bucket(bucket));
}

GradientBuckets::Bucket GradientBuckets::make_bucket(const std::vector<std::size_t>& parameters) {
  std::size_t bytes = 0;
  for (std::size_t parameter : parameters) bytes += aligned(parameters_[parameter].nbytes());
  Bucket bucket;
  bucket.memory = std::make_shared<comm::Buffer>(group_.allocate(bytes));
  bucket.dtype = nn::dtype_of(parameters_[parameters.front()]);
  std::memset(bucket.memory->bytes().data(), 0, bytes);
  std::byte* memory = bucket.memory->bytes().data();
  for (std::size_t parameter : parameters) {
    places_[parameter] = tensor_at(memory, parameters_[parameter], bucket.memory);
    bucket_of_[parameter] = buckets_.size();
    memory += aligned(parameters_[parameter].nbytes());
  }
  return bucket;
}

void GradientBuckets::take(std::size_t parameter) {
  const at::Tensor& gradient = parameters_[parameter].grad();
  const at::Tensor& place = places_[parameter];
  if (!gradient.defined()) {
    std::memset(place.data_ptr(), 0, place.nbytes());
    return;
  }
  if (gradient.data_ptr() == place.data_ptr()) return;
  place.copy_(gradient.detach());
  give(parameter);
}

// The bucket is averaged as a whole, and an average of equal values rounds and overflows.
void GradientBuckets::take_unused(std::size_t parameter) {
  take(parameter);
  const at::Tensor& gradient = parameters_[parameter].grad();
  if (gradient.defined()) kept_.emplace_back(parameter, gradient.detach().clone());
}

void GradientBuckets::give(std::size_t parameter) {
  at::Tensor& gradient = parameters_[parameter].mutable_grad();
  if (!gradient.defined() || gradient.data_ptr() != places_[parameter].data_ptr()) {
    gradient = places_[parameter];
  }
}

void GradientBuckets::start_pass() {
  launched_ = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i].missing = plan_[i].size();
}

void GradientBuckets::complete(std::size_t parameter) {
  --buckets_[bucket_of_[parameter]].missing;
  for (; launched_ < buckets_.size() && buckets_[launched_].missing == 0; ++launched_) {
    launch(buckets_[launched_]);
  }
}

void GradientBuckets::launch(Bucket& bucket) {
  bucket.work = group_.all_reduce_async(
      bucket.memory->bytes(), {.dtype = bucket.dtype, .op = comm::ReduceOp::average, .exact = exact_});
}

void GradientBuckets::wait() {
  LOCKSTEP_CHECK(launched_ == buckets_.size(), "gradients are waited for that nobody reduces");
  for (Bucket& bucket : buckets_) bucket.work.wait();
  for (const auto& [parameter, gradient] : kept_) places_[parameter].copy_(gradient);
  kept_.clear();
}

}  // namespace lockstep::parallel
