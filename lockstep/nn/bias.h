// SPDX-License-Identifier: Apache-2.0
//
// What is added to the sum over lanes, once.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/lanes.h"
#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// Adds the bias, which all lanes share, to every row. `x` holds the tokens that lie here (Lanes::held), so
// that Lanes::tokens is needed with one lane too.
at::Tensor add_bias(const at::Tensor& x, const Parameter& bias, const Lanes& lanes);

// Adds to each token the row of its place, the first place of a sequence of `length` being `first`; otherwise
// like add_bias().
struct SequencePlaces {
  std::int64_t length = 0;
  std::int64_t first = 0;
};
at::Tensor add_places(const at::Tensor& x, const Parameter& table, const SequencePlaces& places,
                      const Lanes& lanes);

}  // namespace lockstep::nn
