// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

// Element types that cross the libtorch line. The values appear in frames: never renumber.
enum class DType : std::uint8_t { fp32 = 0, bf16 = 1, fp16 = 2, fp64 = 3, int32 = 4, int64 = 5, uint8 = 6 };

inline constexpr std::array kAllDTypes = {DType::fp32,  DType::bf16,  DType::fp16, DType::fp64,
                                          DType::int32, DType::int64, DType::uint8};

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
    case DType::int64:
      return 8;
    case DType::fp32:
    case DType::int32:
      return 4;
    case DType::bf16:
    case DType::fp16:
      return 2;
    case DType::uint8:
      return 1;
  }
  return 0;
}

std::string_view name_of(DType dtype);

// Throws UsageError naming the accepted names.
DType parse_dtype(std::string_view name);

}  // namespace lockstep
