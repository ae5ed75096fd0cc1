// SPDX-License-Identifier: Apache-2.0
//
// The values that benchmarks check with: a function of (rank, element), different on every rank, so that any
// rank can compute what all others hold. Floats lie in [0.5, 1.5) with all bits of the mantissa in use, so
// that a wrong order of addition shows; integers use their whole range and wrap around.
//
// The expected results are computed element by element from these definitions, with none of the code that is
// being measured.
#pragma once

#include <cstddef>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"
#include "lockstep/base/rank.h"
#include "lockstep/mesh/range.h"

namespace lockstep::cli {

enum class Comparison {
  bits,     // the sum in the canonical order, bit for bit
  rounding  // within the rounding errors that any order of addition may make; integers bit for bit
};

// Writes the values of `rank` to the elements `where` of the buffer.
void fill_values(Bytes buffer, DType dtype, Rank rank, Range where);

// Are the elements `where` of the buffer the sum of the values of all ranks?
bool holds_sum(ConstBytes buffer, DType dtype, int ranks, Range where, Comparison comparison);

// Are the elements `where` of the buffer the values of `rank`, beginning with its element `first`?
bool holds_values(ConstBytes buffer, DType dtype, Rank rank, Range where, std::size_t first);

}  // namespace lockstep::cli
