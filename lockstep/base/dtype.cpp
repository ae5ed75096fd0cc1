// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/dtype.h"

#include <string>
#include <vector>

#include "lockstep/base/suggest.h"

namespace lockstep {

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::fp16:
      return "fp16";
    case DType::fp64:
      return "fp64";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::uint8:
      return "uint8";
  }
  return "unknown";
}

DType parse_dtype(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (name == name_of(dtype)) return dtype;
  }
  std::vector<std::string> known;
  for (DType dtype : kAllDTypes) known.emplace_back(name_of(dtype));
  refuse_name("dtype", name, known);
}

}  // namespace lockstep
