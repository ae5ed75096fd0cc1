// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/checkpoint/safetensors/header.h"

namespace lockstep::checkpoint {

// A tensor that is going to be written.
struct HeaderEntry {
  std::string name;
  DType dtype = DType::fp32;
  std::vector<std::int64_t> shape;

  std::uint64_t bytes() const;
};

// What a safetensors file begins with: its data follows, the tensors in this order. Its size is a multiple of
// 8. InternalError when two tensors have one name.
std::string header_text(std::span<const HeaderEntry> tensors, const Metadata& metadata);

}  // namespace lockstep::checkpoint
