// SPDX-License-Identifier: Apache-2.0
#include "tests/support/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "lockstep/schedule/collective/canonical.h"

namespace lockstep::test {
namespace {

std::uint64_t hash(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// The bit patterns of 1 and 2.
void store_small(std::byte* at, DType dtype, bool two) {
  switch (dtype) {
    case DType::fp32:
      return store(at, two ? 2.0F : 1.0F);
    case DType::fp64:
      return store(at, two ? 2.0 : 1.0);
    case DType::bf16:
      return store<std::uint16_t>(at, two ? 0x4000 : 0x3f80);
    case DType::fp16:
      return store<std::uint16_t>(at, two ? 0x4000 : 0x3c00);
    case DType::int32:
      return store<std::int32_t>(at, two ? 2 : 1);
    case DType::int64:
      return store<std::int64_t>(at, two ? 2 : 1);
    case DType::uint8:
      return store<std::uint8_t>(at, two ? 2 : 1);
  }
}

// Random mantissas and exponents near one; integers of all sizes.
void store_rough(std::byte* at, DType dtype, std::uint64_t bits) {
  const auto exponent = static_cast<std::uint32_t>(bits >> 40 & 7) - 4;
  const std::uint32_t sign = bits >> 50 & 1;
  switch (dtype) {
    case DType::fp32:
      return store(at, sign << 31 | (127 + exponent) << 23 | static_cast<std::uint32_t>(bits & 0x7fffff));
    case DType::fp64:
      return store(at, (bits & 0x800fffffffffffffULL) | static_cast<std::uint64_t>(1019 + (bits >> 53 & 7))
                                                            << 52);
    case DType::bf16:
      return store(at, static_cast<std::uint16_t>(sign << 15 | (127 + exponent) << 7 | (bits & 0x7f)));
    case DType::fp16:
      return store(at, static_cast<std::uint16_t>(sign << 15 | (15 + exponent) << 10 | (bits & 0x3ff)));
    case DType::int32:
      return store(at, static_cast<std::uint32_t>(bits));
    case DType::int64:
      return store(at, bits);
    case DType::uint8:
      return store(at, static_cast<std::uint8_t>(bits));
  }
}

}  // namespace

std::vector<std::byte> values_of(Rank rank, std::uint32_t seed, DType dtype, std::size_t count, Values kind) {
  const std::size_t size = size_of(dtype);
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = hash(hash(static_cast<std::uint64_t>(rank) << 32 | seed) + i);
    if (kind == Values::small) {
      store_small(&bytes[i * size], dtype, (bits & 1) != 0);
    } else {
      store_rough(&bytes[i * size], dtype, bits);
    }
  }
  return bytes;
}

std::vector<std::byte> reduced_values(int world, std::uint32_t seed, DType dtype, std::size_t count,
                                      Values kind, kernels::ReduceOp op) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<kernels::Operand> operands;
  const std::vector<std::uint8_t> merges = schedule::canonical_merges(world);
  for (Rank rank = 0; rank < world; ++rank) inputs.push_back(values_of(rank, seed, dtype, count, kind));
  for (Rank rank = 0; rank < world; ++rank) operands.push_back({inputs[rank].data(), merges[rank]});
  std::vector<std::byte> result(count * size_of(dtype));
  const std::array<std::byte*, 1> destination = {result.data()};
  const std::size_t divide_by = op == kernels::ReduceOp::average ? static_cast<std::size_t>(world) : 1;
  kernels::combine_reference({.dtype = dtype, .op = op, .divide_by = divide_by}, operands, destination,
                             count);
  return result;
}

std::ptrdiff_t first_difference(ConstBytes a, ConstBytes b, DType dtype) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (left == a.end() && right == b.end()) return -1;
  return (left - a.begin()) / static_cast<std::ptrdiff_t>(size_of(dtype));
}

}  // namespace lockstep::test
