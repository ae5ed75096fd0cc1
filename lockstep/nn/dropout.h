// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/lanes.h"

namespace lockstep::nn {

// Which samples of the run the rows of a batch are. A sample's number never comes again in a run, so it
// stands for the step as well.
struct Samples {
  std::uint64_t seed = 0;                   // of the run
  std::vector<std::uint64_t> numbers = {};  // one per row, each below 2^44; none: nothing is dropped
};

// Where in the model elements are dropped.
struct DropoutPlace {
  float probability = 0.0F;  // of falling away, at least 0 and below 1
  std::uint64_t layer = 0;   // below 2^16
  std::uint64_t place = 0;   // among those of the layer, below 16
};

// x / (1 - probability) or 0. x: [samples, ...]. What falls away depends on the seed, the sample's number,
// the place in the model and the element's place in the sample: not on who computes the sample, on the others
// of its batch, on how often it is computed, on the device or on the dtype. When lanes divide the tokens, x
// is [tokens, width], those that lie here (Lanes::held).
at::Tensor dropout(const at::Tensor& x, const DropoutPlace& where, const Samples& samples,
                   const Lanes& lanes = {});

}  // namespace lockstep::nn
