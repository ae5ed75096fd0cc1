// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lockstep/base/dtype.h"

namespace lockstep::checkpoint {

// A type of the format, and ours that is the same.
struct SafetensorsType {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<DType> dtype = std::nullopt;
};

// In the order in which writers place tensors: whoever maps the file finds each aligned to its type.
inline constexpr auto kTypes = std::to_array<SafetensorsType>({
    {"U64", 8},
    {"I64", 8, DType::int64},
    {"F64", 8, DType::fp64},
    {"C64", 8},
    {"F32", 4, DType::fp32},
    {"U32", 4},
    {"I32", 4, DType::int32},
    {"BF16", 2, DType::bf16},
    {"F16", 2, DType::fp16},
    {"U16", 2},
    {"I16", 2},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"F8_E8M0", 1},
    {"F8_E4M3FNUZ", 1},
    {"F8_E5M2FNUZ", 1},
    {"I8", 1},
    {"U8", 1, DType::uint8},
    {"BOOL", 1},
});

}  // namespace lockstep::checkpoint
