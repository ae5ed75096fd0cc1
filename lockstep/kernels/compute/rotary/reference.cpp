// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/reference.h"

#include <cmath>
#include <complex>

#include "lockstep/kernels/compute/rotary/rotary.h"

namespace lockstep::kernels {

void rotate_reference(std::size_t width, double theta, const Places& places, const Matrix& heads,
                      Rotation rotation) {
  const double direction = rotation == Rotation::forward ? 1.0 : -1.0;
  for (std::size_t row = 0; row < heads.rows; ++row) {
    const auto place = static_cast<double>(places.of(row));
    std::vector<double> values = row_values(heads, row);
    for (std::size_t head = 0; head < heads.columns; head += width) {
      for (std::size_t i = 0; i < width / 2; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(width);
        double& x = values[head + i];
        double& y = values[head + width / 2 + i];
        const auto turned =
            std::complex(x, y) * std::polar(1.0, direction * place * std::pow(theta, exponent));
        x = turned.real();
        y = turned.imag();
      }
    }
    store_row(values, heads, row);
  }
}

}  // namespace lockstep::kernels
