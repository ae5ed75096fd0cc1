// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Sums the gradients of parameters that several tensor lanes share (LaneShard::sharing), in the lane tree.
class SharedGradients {
 public:
  // Collective over the group, whose ranks compute `lanes` lanes as a TensorTeam. `sharing`: how many lanes
  // have a parameter together, for each number that will be asked for; each a power of two.
  SharedGradients(const comm::Communicator& group, int lanes, std::span<const int> sharing);

  // Collective. `parameters`: for each parameter its gradients (fp32, contiguous) of the lanes here, in their
  // order. Each becomes the sum over the `sharing` lanes that it is one of. One message for all parameters.
  void sum(std::span<const std::vector<at::Tensor>> parameters, int sharing) const;

 private:
  struct Level {
    int sharing;
    comm::Communicator ranks;  // that have such a parameter together
  };
  const comm::Communicator& ranks_of(int sharing) const;

  std::size_t here_;
  std::vector<Level> levels_;
};

}  // namespace lockstep::parallel
