// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// Which elements fall away depends on (key, stream, place of the element) only; no mask is stored.
struct Dropout {
  float probability = 0.0F;  // of falling away, at least 0 and below 1
  std::uint64_t key = 0;     // the run's seed, say
  std::uint64_t stream = 0;  // one for each (sample of the run, place in the model)
  std::uint64_t first = 0;   // place of the matrix's first element, when it is a part of a larger one
};

// out = in / (1 - probability) or 0. Element i (first + row * columns + column) is kept if number i % 4 of
// philox(counter (i / 4, stream), key) is at least probability * 2^32. The backward pass is the same
// function on gradients. `out` has the shape and dtype of `in` and may be `in`. UsageError when shapes do not
// fit.
void dropout(const Dropout& dropout, const ConstMatrix& in, const Matrix& out);

// The same in plain C++: the twin that tests compare with.
void dropout_reference(const Dropout& dropout, const ConstMatrix& in, const Matrix& out);

}  // namespace lockstep::kernels
