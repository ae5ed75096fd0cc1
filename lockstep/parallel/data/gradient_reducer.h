// SPDX-License-Identifier: Apache-2.0
//
// Follows the backward passes of a module by hooks on its parameters. A pass begins with the first gradient
// of a parameter that is accumulated; each one after it completes a part of a bucket; the engine of autograd
// calls finish() when the pass has ended, still within backward().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/data/distributed_data_parallel.h"
#include "lockstep/parallel/data/gradient_buckets.h"

namespace lockstep::parallel {

// To a node of a graph: a std::shared_ptr, or an intrusive one in the latest libtorch 2.x.
using GraphNode = decltype(torch::autograd::impl::grad_accumulator(at::Tensor()));

class GradientReducer {
 public:
  GradientReducer(std::shared_ptr<torch::nn::Module> module, const comm::Communicator& group,
                  const DataParallelOptions& options);
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  // Between hold() and resume() gradients are only accumulated.
  void hold() { ++held_; }
  void resume() { --held_; }

 private:
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    at::ScalarType dtype;             // as it was at construction
    std::vector<std::int64_t> sizes;  // as they were at construction
    GraphNode accumulator = {};       // shared with graphs; ours keeps the hook alive
    std::uintptr_t after = 0;         // the hook after accumulation
    unsigned before = 0;              // the hook before it
    bool expected = true;             // may get a gradient; only a known graph says no
    bool reached = false;             // in this pass
    bool used = false;                // since the last average
  };

  void take_parameters();
  void add_hooks(std::size_t index);
  std::unique_ptr<GradientBuckets> make_buckets(BucketPlan plan) const;
  BucketPlan plan_for(const std::vector<std::size_t>& order) const;

  [[noreturn]] void refuse(const Parameter& parameter, std::string_view why) const;
  void check(const Parameter& parameter, const at::Tensor& gradient) const;
  void accumulated(std::size_t index);
  void begin_pass();
  void finish();
  void require_unchanged() const;
  void complete_unreached();
  void complete_without(std::size_t index);  // a gradient of this pass; its users are counted
  void count_users();
  void end_pass();
  void adopt_order();
  void refuse_unused() const;
  void abandon() const noexcept;

  std::shared_ptr<torch::nn::Module> module_;  // shared with the user
  comm::Communicator group_;
  DataParallelOptions options_;
  std::vector<Parameter> parameters_;  // those that need a gradient
  std::unique_ptr<GradientBuckets> buckets_;
  std::vector<std::int32_t> users_;  // by parameter: ranks that used it, as last counted
  std::vector<std::size_t> order_;   // in which parameters were reached in this pass
  int held_ = 0;
  bool in_pass_ = false;
  bool first_pass_ = true;
};

}  // namespace lockstep::parallel
