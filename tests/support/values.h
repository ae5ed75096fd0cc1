// SPDX-License-Identifier: Apache-2.0
//
// Values for tests: different on every rank, and a function of (rank, seed), so that any rank can compute
// what all the others hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"
#include "lockstep/base/rank.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::test {

enum class Values {
  small,  // 1 or 2: sums and products of up to 8 ranks are exact in every dtype, in any order
  rough,  // full-range mantissas: the order of addition shows in the bits
};

std::vector<std::byte> values_of(Rank rank, std::uint32_t seed, DType dtype, std::size_t count, Values kind);

// The reduction of values_of() over ranks 0..world-1 in the canonical tree.
std::vector<std::byte> reduced_values(int world, std::uint32_t seed, DType dtype, std::size_t count,
                                      Values kind, kernels::ReduceOp op);

// The index of the first element in which the bytes differ; -1 if they are equal.
std::ptrdiff_t first_difference(ConstBytes a, ConstBytes b, DType dtype);

}  // namespace lockstep::test
