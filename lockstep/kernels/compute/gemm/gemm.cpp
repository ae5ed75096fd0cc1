// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/gemm/gemm.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/gemm/onednn.h"
#include "lockstep/kernels/compute/gemm/shapes.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

// The product is cut into tiles along one side, always the same ones: the library chooses the order of
// addition by the shape it is given, and the number of threads must not show. Large enough that a tile runs
// at full speed.
constexpr std::size_t kTile = 384;
constexpr std::size_t kTileUnit = 64;

struct Tiles {
  bool along_rows;
  std::size_t count;
  std::size_t size;
};

constexpr std::size_t divided_up(std::size_t value, std::size_t by) {
  return (value + by - 1) / by;
}

// Along the rows each tile packs all of b again, along the columns all of a if a is transposed.
Tiles tiles_of(const Factor& a, const Matrix& c) {
  const bool along_rows = a.transposed ? c.rows >= kTile : c.columns < kTile;
  const std::size_t side = along_rows ? c.rows : c.columns;
  const std::size_t even = divided_up(side, divided_up(side, kTile));
  const std::size_t size = divided_up(even, kTileUnit) * kTileUnit;
  return {.along_rows = along_rows, .count = divided_up(side, size), .size = size};
}

ConstMatrix rows_of(const Factor& factor, std::size_t first, std::size_t count) {
  const ConstMatrix& m = factor.matrix;
  return factor.transposed ? m.part(0, m.rows, first, count) : m.part(first, count, 0, m.columns);
}

ConstMatrix columns_of(const Factor& factor, std::size_t first, std::size_t count) {
  const ConstMatrix& m = factor.matrix;
  return factor.transposed ? m.part(first, count, 0, m.columns) : m.part(0, m.rows, first, count);
}

void multiply_tile(const Factor& a, const Factor& b, const Matrix& c, Addend addend, const Tiles& tiles,
                   std::size_t index) {
  const std::size_t first = index * tiles.size;
  if (tiles.along_rows) {
    const std::size_t count = std::min(tiles.size, c.rows - first);
    multiply({rows_of(a, first, count), a.transposed}, b, c.part(first, count, 0, c.columns), addend);
  } else {
    const std::size_t count = std::min(tiles.size, c.columns - first);
    if (addend.bias != nullptr) addend.bias += first * size_of(a.matrix.dtype);
    multiply(a, {columns_of(b, first, count), b.transposed}, c.part(0, c.rows, first, count), addend);
  }
}

// To be written before they are read.
std::unique_ptr<float[]> floats(std::size_t count) {
  return std::make_unique_for_overwrite<float[]>(count);
}

// A copy in fp32 without gaps.
class Widened {
 public:
  explicit Widened(const Factor& factor)
      : values_(floats(factor.matrix.rows * factor.matrix.columns)),
        factor_{matrix_of(static_cast<const void*>(values_.get()), DType::fp32, factor.matrix.rows,
                          factor.matrix.columns),
                factor.transposed} {
    const ConstMatrix& from = factor.matrix;
    parallel_for(from.rows, [&](std::size_t row) {
      to_floats(from.row(row), from.dtype, {values_.get() + row * from.columns, from.columns});
    });
  }
  const Factor& factor() const { return factor_; }

 private:
  std::unique_ptr<float[]> values_;
  Factor factor_;
};

void run(const Factor& a, const Factor& b, const Matrix& c, const Addend& addend);

void run_in_fp32(const Factor& a, const Factor& b, const Matrix& c, const Addend& addend) {
  const Widened wide_a(a);
  const Widened wide_b(b);
  Addend wide = addend;
  std::vector<float> bias;
  if (addend.bias != nullptr) {
    bias.resize(c.columns);
    to_floats(addend.bias, a.matrix.dtype, bias);
    wide.bias = reinterpret_cast<const std::byte*>(bias.data());
  }
  if (c.dtype == DType::fp32) return run(wide_a.factor(), wide_b.factor(), c, wide);
  const std::unique_ptr<float[]> product = floats(c.rows * c.columns);
  run(wide_a.factor(), wide_b.factor(), matrix_of(product.get(), DType::fp32, c.rows, c.columns), wide);
  parallel_for(c.rows, [&](std::size_t row) {
    from_floats({product.get() + row * c.columns, c.columns}, c.row(row), c.dtype);
  });
}

// A product over nothing.
void run_empty(const Matrix& c, DType factors, const Addend& addend) {
  if (addend.store == Store::add) return;
  std::vector<float> row(c.columns, 0.0F);
  if (addend.bias != nullptr) to_floats(addend.bias, factors, row);
  for (std::size_t i = 0; i < c.rows; ++i) from_floats(row, c.row(i), c.dtype);
}

void run(const Factor& a, const Factor& b, const Matrix& c, const Addend& addend) {
  if (c.rows == 0 || c.columns == 0) return;
  if (a.columns() == 0) return run_empty(c, a.matrix.dtype, addend);
  if (multiplied_as(a.matrix.dtype) != a.matrix.dtype) return run_in_fp32(a, b, c, addend);
  const Tiles tiles = tiles_of(a, c);
  parallel_for(tiles.count, [&](std::size_t index) { multiply_tile(a, b, c, addend, tiles, index); });
}

}  // namespace

void gemm(const Factor& a, const Factor& b, const Matrix& c, Store store) {
  check_shapes(a, b, c, store);
  run(a, b, c, {.store = store});
}

void gemm_with_bias(const Factor& a, const Factor& b, const ConstMatrix& bias, const Matrix& c) {
  check_shapes(a, b, c, Store::replace);
  check_bias(bias, a, c);
  run(a, b, c, {.bias = bias.data});
}

}  // namespace lockstep::kernels
