// SPDX-License-Identifier: Apache-2.0
//
// The memory of gradients, and its reduction. Buckets lie in registered memory; the gradient of a parameter,
// once taken, is a tensor in its bucket with the parameter's shape and strides.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/data/bucket_plan.h"

namespace lockstep::parallel {

class GradientBuckets {
 public:
  // Parameters are on the CPU and have a dtype that can be averaged.
  GradientBuckets(comm::Communicator group, std::vector<at::Tensor> parameters, BucketPlan plan,
                  std::optional<bool> exact);

  const BucketPlan& plan() const { return plan_; }

  // Makes the bucket hold what the parameter has for a gradient, and the gradient a tensor in the bucket.
  // Zeros, and no gradient, for a parameter that has none.
  void take(std::size_t parameter);

  // The same for a parameter that no rank used: wait() leaves it the gradient it had.
  void take_unused(std::size_t parameter);

  // Makes what the bucket holds the parameter's gradient.
  void give(std::size_t parameter);

  // Starts a pass: a bucket is reduced after complete() was called once for each of its parameters.
  void start_pass();

  // Starts the reduction of every bucket that is ready and not behind one that is not, so that all ranks
  // reduce in the same order.
  void complete(std::size_t parameter);

  // Ends when all buckets have been averaged over the group; every parameter must be complete.
  void wait();

 private:
  struct Bucket {
    std::shared_ptr<comm::Buffer> memory;  // shared with the gradients in it, which users may keep
    DType dtype = DType::fp32;
    std::size_t missing = 0;  // parameters not complete in this pass
    comm::Work work;
  };

  Bucket make_bucket(const std::vector<std::size_t>& parameters);
  void launch(Bucket& bucket);

  comm::Communicator group_;
  std::vector<at::Tensor> parameters_;
  BucketPlan plan_;
  std::optional<bool> exact_;
  std::vector<Bucket> buckets_;
  std::vector<at::Tensor> places_;                        // by parameter: its gradient in the bucket
  std::vector<std::size_t> bucket_of_;                    // by parameter
  std::vector<std::pair<std::size_t, at::Tensor>> kept_;  // parameters that no rank used, and what they had
  std::size_t launched_ = 0;                              // buckets whose reduction was started in this pass
};

}  // namespace lockstep::parallel
