// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/team.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/parallel/tensor/shards.h"

namespace lockstep::parallel {
namespace {

Bytes bytes_of(const at::Tensor& tensor) {
  LOCKSTEP_CHECK(tensor.is_contiguous() && tensor.is_cpu());
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Exact sums over a power of two of ranks are the perfect binary tree over them, each node rounded: the upper
// part of the tree over lanes.
comm::Options exactly(const at::Tensor& tensor, std::uint32_t stream) {
  return {.dtype = nn::dtype_of(tensor), .exact = true, .stream = stream};
}

class Sum final : public nn::LaneSum {
 public:
  Sum(at::Tensor tensor, comm::Work work) : tensor_(std::move(tensor)), work_(std::move(work)) {}
  ~Sum() override {
    if (!waited_) work_.cancel();
  }
  void wait() override {
    work_.wait();
    waited_ = true;
  }

 private:
  at::Tensor tensor_;  // whose memory the operation uses
  comm::Work work_;
  bool waited_ = false;
};

}  // namespace

TensorTeam::TensorTeam(comm::Communicator group, const TeamOptions& options)
    : group_(std::move(group)), stream_(options.stream) {
  const int lanes = options.lanes;
  check_tensor_lanes({.heads = lanes, .kv_heads = lanes, .ffn_width = lanes}, lanes, group_.size());
  const int count = lanes / group_.size();
  share_ = {.lanes = lanes,
            .first = group_.rank() * count,
            .count = count,
            .divides_tokens = options.divides_tokens};
}

void TensorTeam::all_reduce(const at::Tensor& values) const {
  group_.all_reduce(bytes_of(values), exactly(values, stream_));
}

void TensorTeam::reduce_scatter(const at::Tensor& rows) const {
  group_.reduce_scatter(bytes_of(rows), exactly(rows, stream_));
}

void TensorTeam::all_gather(const at::Tensor& rows) const {
  group_.all_gather(bytes_of(rows), exactly(rows, stream_));
}

std::unique_ptr<nn::LaneSum> TensorTeam::start_all_reduce(const at::Tensor& values) const {
  return std::make_unique<Sum>(values, group_.all_reduce_async(bytes_of(values), exactly(values, stream_)));
}

std::unique_ptr<nn::LaneSum> TensorTeam::start_reduce_scatter(const at::Tensor& rows) const {
  return std::make_unique<Sum>(rows, group_.reduce_scatter_async(bytes_of(rows), exactly(rows, stream_)));
}

std::unique_ptr<nn::LaneSum> TensorTeam::start_reduce(const at::Tensor& values, int lane) const {
  comm::Options options = exactly(values, stream_);
  options.root = lane / share_.count;
  return std::make_unique<Sum>(values, group_.reduce_async(bytes_of(values), options));
}

}  // namespace lockstep::parallel
