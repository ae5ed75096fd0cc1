// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/working_values.h"

#include <cstdint>
#include <vector>

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/update/split.h"

namespace lockstep::train {

void write_working(std::span<const float> values, DType dtype, Bytes where) {
  if (dtype != DType::bf16) return kernels::from_floats(values, where.data(), dtype);
  std::vector<std::uint16_t> unused(values.size());
  kernels::split(values, {reinterpret_cast<std::uint16_t*>(where.data()), values.size()}, unused);
}

}  // namespace lockstep::train
