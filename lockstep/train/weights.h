// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/kernels/compute/update/optimizers.h"
#include "lockstep/train/holding.h"

namespace lockstep::train {

// How an optimizer is set for a step; its weight decay applies to the parameters that decay.
using OptimizerStep = std::variant<kernels::AdamW, kernels::Sgd>;

// The parameters that a rank holds in the dtype that blocks compute with, and of those that it updates the
// values in fp32 and what the optimizer remembers.
class Weights {
 public:
  // First values from the seed: all ranks make theirs together. `moments`: how many floats per parameter the
  // optimizer remembers (AdamW 2, SGD 1). The holding must outlive this.
  Weights(const Holding& holding, DType dtype, std::uint64_t seed, int moments);

  DType dtype() const { return dtype_; }
  const at::Tensor& working() const { return working_; }  // flat, of the dtype
  // Of a bucket, or any elements, in registered memory.
  Bytes working(std::size_t bucket) const;
  Bytes working(Range elements) const;

  // Gives elements `first` .. of a parameter their values.
  void assign(std::size_t parameter, std::size_t first, std::span<const float> values);

  // One step of the optimizer for this rank's share of a bucket; `gradients` are those of the share, to be
  // multiplied by `gradient_scale`.
  void update(const OptimizerStep& how, std::size_t bucket, std::span<const float> gradients,
              float gradient_scale);

  // All ranks call these together: all parameters of the model in the layout of the whole, as blocks compute
  // with them and in fp32, and what the optimizer remembers.
  at::Tensor gather_working() const;
  at::Tensor gather_master() const;
  at::Tensor gather_moment(int index) const;

 private:
  void give_first_values(std::uint64_t seed);
  // This rank's share of a bucket in fp32: of what is kept for shares only, or of what is kept whole.
  std::span<float> share(const at::Tensor& shares, std::size_t bucket) const;
  std::span<float> master(std::size_t bucket) const;
  at::Tensor gather(const at::Tensor& shares) const;

  const Holding& holding_;
  const model::FlatLayout& layout_;  // of the holding, as the partition
  const Partition& partition_;
  DType dtype_;
  std::vector<std::size_t> share_begins_;  // by bucket, in tensors of shares
  comm::Buffer memory_;
  at::Tensor working_;               // in memory_
  at::Tensor master_;                // shares; undefined in fp32, where the working values serve
  std::vector<at::Tensor> moments_;  // shares
};

}  // namespace lockstep::train
