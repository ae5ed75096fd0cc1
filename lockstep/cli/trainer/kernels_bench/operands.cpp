// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/kernels_bench/operands.h"

#include "lockstep/kernels/compute/convert.h"

namespace lockstep::cli {

Values::Values(DType dtype, std::size_t rows, std::size_t columns)
    : dtype_(dtype), rows_(rows), columns_(columns), memory_(rows * columns * size_of(dtype)) {
  std::vector<float> row(columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j)
      row[j] = 4.0F * static_cast<float>((i * 7919 + j * 104729) % 10007) / 10007.0F - 2.0F;
    kernels::from_floats(row, matrix().row(i), dtype);
  }
}

std::shared_ptr<Values> values(DType dtype, std::size_t rows, std::size_t columns) {
  return std::make_shared<Values>(dtype, rows, columns);
}

}  // namespace lockstep::cli
