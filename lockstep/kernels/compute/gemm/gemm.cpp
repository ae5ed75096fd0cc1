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

// Products that are computed in fp32 although their factors are not are cut along the inner side as well.
constexpr std::size_t kSlice = 4096;

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

// The factors and the place of a product.
struct Product {
  Factor a;
  Factor b;
  Matrix c;
  Addend addend;
};

// Where the bias is cut, it has the dtype of a.
Product tile_of(const Product& all, const Tiles& tiles, std::size_t index) {
  const auto& [a, b, c, addend] = all;
  const std::size_t first = index * tiles.size;
  if (tiles.along_rows) {
    const std::size_t count = std::min(tiles.size, c.rows - first);
    return {{rows_of(a, first, count), a.transposed}, b, c.part(first, count, 0, c.columns), addend};
  }
  const std::size_t count = std::min(tiles.size, c.columns - first);
  Addend of_tile = addend;
  if (addend.bias != nullptr) of_tile.bias += first * size_of(a.matrix.dtype);
  return {a, {columns_of(b, first, count), b.transposed}, c.part(0, c.rows, first, count), of_tile};
}

void multiply(const Product& product) {
  multiply(product.a, product.b, product.c, product.addend);
}

// To be written before they are read.
std::unique_ptr<float[]> floats(std::size_t count) {
  return std::make_unique_for_overwrite<float[]>(count);
}

// A factor in fp32: itself, or a copy without gaps.
class Widened {
 public:
  explicit Widened(const Factor& factor) : factor_(factor) {
    const ConstMatrix& from = factor.matrix;
    if (from.dtype == DType::fp32) return;
    values_ = floats(from.rows * from.columns);
    parallel_for(from.rows, [&](std::size_t row) {
      to_floats(from.row(row), from.dtype, {values_.get() + row * from.columns, from.columns});
    });
    factor_.matrix = matrix_of(static_cast<const void*>(values_.get()), DType::fp32, from.rows, from.columns);
  }
  const Factor& factor() const { return factor_; }

 private:
  std::unique_ptr<float[]> values_;
  Factor factor_;
};

// A tile whose bias is in fp32, its factors as they come. What is widened of the one that is cut into tiles
// is bounded: the weights of a head are as long as the vocabulary.
void multiply_in_fp32(const Product& tile) {
  const auto& [a, b, c, addend] = tile;
  const bool is_rounded = c.dtype != DType::fp32;
  const std::unique_ptr<float[]> sums = is_rounded ? floats(c.rows * c.columns) : nullptr;
  const Matrix sum = is_rounded ? matrix_of(sums.get(), DType::fp32, c.rows, c.columns) : c;
  for (std::size_t first = 0; first < a.columns(); first += kSlice) {
    const std::size_t count = std::min(kSlice, a.columns() - first);
    const Widened wide_a({columns_of(a, first, count), a.transposed});
    const Widened wide_b({rows_of(b, first, count), b.transposed});
    multiply(wide_a.factor(), wide_b.factor(), sum, first == 0 ? addend : Addend{.store = Store::add});
  }
  for (std::size_t row = 0; is_rounded && row < c.rows; ++row) {
    from_floats({sums.get() + row * c.columns, c.columns}, c.row(row), c.dtype);
  }
}

// The factor that all tiles need is widened once.
void run_in_fp32(const Product& all, const Tiles& tiles) {
  const Widened common(tiles.along_rows ? all.b : all.a);
  Product wide = all;
  (tiles.along_rows ? wide.b : wide.a) = common.factor();
  std::vector<float> bias;
  if (all.addend.bias != nullptr) {
    bias.resize(all.c.columns);
    to_floats(all.addend.bias, all.a.matrix.dtype, bias);
    wide.addend.bias = reinterpret_cast<const std::byte*>(bias.data());
  }
  parallel_for(tiles.count, [&](std::size_t index) { multiply_in_fp32(tile_of(wide, tiles, index)); });
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
  const Tiles tiles = tiles_of(a, c);
  const Product all = {a, b, c, addend};
  if (multiplied_as(a.matrix.dtype) != a.matrix.dtype) return run_in_fp32(all, tiles);
  parallel_for(tiles.count, [&](std::size_t index) { multiply(tile_of(all, tiles, index)); });
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
