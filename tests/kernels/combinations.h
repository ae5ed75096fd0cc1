// SPDX-License-Identifier: Apache-2.0
//
// Operands for tests of combine(), and the comparison with its plain twin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {

using Buffer = std::vector<std::byte>;

inline constexpr ReduceOp kEveryOp[] = {ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max,
                                        ReduceOp::product};

// Bits of any kind, so floats include denormals, infinities and NaN; every third element is an ordinary
// number.
Buffer random_elements(std::mt19937_64& random, DType dtype, std::size_t elements);

// Merge counts of four shapes of tree over n leaves.
std::vector<std::uint8_t> balanced_merges(std::size_t leaves);
std::vector<std::uint8_t> left_merges(std::size_t leaves);   // ((a+b)+c)+d
std::vector<std::uint8_t> right_merges(std::size_t leaves);  // a+(b+(c+d)), leaves <= 256
std::vector<std::uint8_t> random_merges(std::mt19937_64& random, std::size_t leaves);

// Where each buffer of a case lies, in bytes after an aligned address.
struct Placement {
  std::size_t operand_offset = 0;
  std::size_t destination_offset = 0;
};

struct Case {
  Combination how = {};
  std::vector<std::uint8_t> merges = {};
  std::size_t elements = 0;
  std::size_t destinations = 1;
  // The first destinations are the first operands themselves.
  std::size_t in_place = 0;
  Placement placement = {};
};

// Runs combine() and combine_reference() on equal random operands and fails the current test where a byte of
// any destination, of any operand, or of the bytes around them differs.
void expect_same_as_reference(const Case& test_case, std::mt19937_64& random);

}  // namespace lockstep::kernels
