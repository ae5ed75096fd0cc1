// SPDX-License-Identifier: Apache-2.0
//
// Data parallelism for any torch::nn::Module: every rank runs the same model on its own samples, and the
// gradients are averaged over the ranks while backward still runs.
//
//   comm::Communicator world = comm::connect_from_environment();
//   Net net(...);
//   parallel::DistributedDataParallel ddp(net, world);     // from here on all ranks have rank 0's weights
//   torch::optim::SGD optimizer(net->parameters(), 0.1);
//   for (...) {
//     optimizer.zero_grad();
//     loss(net->forward(my_samples)).backward();           // returns with averaged gradients
//     optimizer.step();
//   }
//
// All ranks of the group make it, run backward and let go of it in the same order. Backward passes of one
// module run on one thread at a time. Gradients lie in buckets of registered memory; keep them, read them,
// clip them in place, zero them or reset them as usual, but do not assign others.
//
// backward() raises
//   UsageError   on all ranks, when a parameter got no gradient (unless find_unused); the group stays usable.
//                On the rank it concerns, when the module changed after construction, for sparse gradients,
//                for create_graph, and for a broken promise of static_graph; the others get Aborted.
//   CommError    as comm::Communicator.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "lockstep/comm/communicator.h"

namespace torch::nn {
class Module;
template <typename Contained>
class ModuleHolder;
}  // namespace torch::nn

namespace lockstep::parallel {

class GradientReducer;

// The same on all ranks.
struct DataParallelOptions {
  // Gradients are reduced in pieces of about this size, each as soon as backward has computed it.
  std::size_t bucket_bytes = std::size_t{4} << 20;
  // Allows that parameters get no gradient in a pass. One that gets none on any rank keeps the gradient it
  // had, or has none; one that gets none on some counts as zero there. A bucket with such a parameter is
  // reduced at the end of backward.
  bool find_unused = false;
  // A promise: on each rank, every pass gives gradients to the same parameters as the first did. Ranks then
  // need not ask each other who used what, and unused parameters delay nothing.
  bool static_graph = false;
  // Gives the module's buffers (running means, for example) rank 0's values at the end of every backward that
  // averages, so that all ranks enter the next forward with the same.
  bool broadcast_buffers = true;
  // Whether gradients are added in the canonical order (docs/ddp.md); none: as the group.
  std::optional<bool> exact = {};
};

// A small value: copies refer to the same. The module takes part as long as one of them lives.
class DistributedDataParallel {
 public:
  // Collective over `group`. UsageError if the ranks built different models, or for a parameter or buffer
  // that is not in CPU memory or a gradient that cannot be averaged.
  DistributedDataParallel(std::shared_ptr<torch::nn::Module> module, const comm::Communicator& group,
                          const DataParallelOptions& options = {});

  // The same for what TORCH_MODULE defines, and torch::nn::Sequential.
  template <typename Contained>
  DistributedDataParallel(const torch::nn::ModuleHolder<Contained>& module, const comm::Communicator& group,
                          const DataParallelOptions& options = {})
      : DistributedDataParallel(module.ptr(), group, options) {}

  // While it lives, backward only adds to the gradients of this rank; the first pass after it averages the
  // sum of all. Several may be nested.
  class NoSync {
   public:
    explicit NoSync(std::shared_ptr<GradientReducer> reducer);
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;
    ~NoSync();

   private:
    std::shared_ptr<GradientReducer> reducer_;  // shared with the values it came from
  };
  [[nodiscard]] NoSync no_sync() const { return NoSync(reducer_); }

 private:
  std::shared_ptr<GradientReducer> reducer_;  // shared by copies
};

}  // namespace lockstep::parallel
