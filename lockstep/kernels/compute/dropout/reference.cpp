// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/reference.h"

#include "lockstep/base/philox.h"
#include "lockstep/kernels/compute/dropout/check.h"
#include "lockstep/kernels/compute/dropout/dropout.h"

namespace lockstep::kernels {
namespace {

bool is_kept(const Dropout& dropout, std::uint64_t element) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const std::uint64_t counter = element / 4;
  const PhiloxCounter numbers =
      philox({low(counter), low(counter >> 32), low(dropout.stream), low(dropout.stream >> 32)},
             {low(dropout.key), low(dropout.key >> 32)});
  return numbers[element % 4] >= threshold_of(dropout);
}

}  // namespace

void dropout_reference(const Dropout& dropout, const ConstMatrix& in, const Matrix& out) {
  check_dropout(dropout, in, out);
  for (std::size_t row = 0; row < in.rows; ++row) {
    std::vector<double> values = row_values(in, row);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = is_kept(dropout, dropout.first + row * in.columns + i)
                      ? values[i] / (1.0 - dropout.probability)
                      : 0.0;
    store_row(values, out, row);
  }
}

}  // namespace lockstep::kernels
