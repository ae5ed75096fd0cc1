// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rotary/rotary.h"

#include <cmath>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/rotary/row.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {
namespace {

void check_rotation(const RotaryTable& table, const Places& places, const Matrix& heads) {
  check_floating("rotary: the matrix of heads", heads);
  if (heads.columns % table.width() != 0) {
    throw UsageError(
        fmt::format("rotary: {} columns are not whole heads of width {}", heads.columns, table.width()));
  }
  check_places("rotary", places, heads.rows, table.length());
}

}  // namespace

RotaryTable::RotaryTable(std::size_t length, std::size_t width, double theta,
                         const std::optional<RotaryScaling>& scaling)
    : length_(length), width_(width) {
  const std::vector<double> frequencies = rotary_frequencies(width, theta, scaling);
  cosines_.reserve(length * (width / 2));
  sines_.reserve(length * (width / 2));
  for (std::size_t place = 0; place < length; ++place) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(place) * frequency;
      cosines_.push_back(static_cast<float>(std::cos(angle)));
      sines_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

void rotate(const RotaryTable& table, const Places& places, const Matrix& heads, Rotation rotation) {
  check_rotation(table, places, heads);
  const float direction = rotation == Rotation::forward ? 1.0F : -1.0F;
  for_each_row(heads.rows, [&](std::size_t row) {
    RowBuffers& buffers = RowBuffers::mine();
    const std::size_t place = places.of(row);
    const auto values = buffers.read(RowBuffers::in, heads, row);
    const auto results = buffers.target(RowBuffers::out, heads, row);
    for (std::size_t first = 0; first < heads.columns; first += table.width()) {
      rotate_head(values.subspan(first, table.width()), table.cosines(place), table.sines(place), direction,
                  results.subspan(first, table.width()));
    }
    RowBuffers::store(results, heads, row);
  });
}

}  // namespace lockstep::kernels
