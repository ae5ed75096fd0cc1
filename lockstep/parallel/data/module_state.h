// SPDX-License-Identifier: Apache-2.0
//
// What a module holds, and how all ranks come to hold the same.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/comm/communicator.h"

namespace torch::nn {
class Module;
}

namespace lockstep::parallel {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// In the order of registration; a tensor with several names (tied weights) comes once, under its first.
std::vector<NamedTensor> parameters_of(const torch::nn::Module& module);
std::vector<NamedTensor> buffers_of(const torch::nn::Module& module);

// "float [3, 5]"
std::string shape_of(const at::Tensor& tensor);

// Collective. UsageError on all ranks if one has other settings than rank 0, or tensors with other names,
// dtypes, shapes or strides; on that rank it says which. The group stays usable.
void require_same_on_all_ranks(const comm::Communicator& group, const std::string& settings,
                               const std::vector<NamedTensor>& tensors);

// Collective: copies the values of rank 0 to all ranks. The tensors are alike everywhere, and on the CPU.
void broadcast_values(const comm::Communicator& group, const std::vector<NamedTensor>& tensors);

}  // namespace lockstep::parallel
