// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/gemm/shapes.h"

namespace lockstep::kernels {
namespace {

// Rows of the factor itself, whether it is stored so or transposed.
std::vector<float> values_of(const Factor& factor) {
  const ConstMatrix& m = factor.matrix;
  std::vector<float> stored(m.rows * m.columns);
  for (std::size_t row = 0; row < m.rows; ++row) {
    to_floats(m.row(row), m.dtype, {stored.data() + row * m.columns, m.columns});
  }
  if (!factor.transposed) return stored;
  std::vector<float> values(stored.size());
  for (std::size_t row = 0; row < m.rows; ++row) {
    for (std::size_t column = 0; column < m.columns; ++column) {
      values[column * m.rows + row] = stored[row * m.columns + column];
    }
  }
  return values;
}

void multiply_rows(const Factor& a, const Factor& b, const Matrix& c, Store store,
                   const std::vector<float>& bias) {
  const std::vector<float> left = values_of(a);
  const std::vector<float> right = values_of(b);
  const std::size_t inner = a.columns();
  std::vector<float> product(c.columns);
  for (std::size_t row = 0; row < c.rows; ++row) {
    std::vector<double> sums(bias.begin(), bias.end());
    if (store == Store::add) {
      to_floats(c.row(row), c.dtype, product);
      sums.assign(product.begin(), product.end());
    }
    for (std::size_t k = 0; k < inner; ++k) {
      const double factor = left[row * inner + k];
      for (std::size_t column = 0; column < c.columns; ++column) {
        sums[column] += factor * right[k * c.columns + column];
      }
    }
    for (std::size_t column = 0; column < c.columns; ++column)
      product[column] = static_cast<float>(sums[column]);
    from_floats(product, c.row(row), c.dtype);
  }
}

}  // namespace

void gemm_reference(const Factor& a, const Factor& b, const Matrix& c, Store store) {
  check_shapes(a, b, c, store);
  multiply_rows(a, b, c, store, std::vector<float>(c.columns, 0.0F));
}

void gemm_with_bias_reference(const Factor& a, const Factor& b, const ConstMatrix& bias, const Matrix& c) {
  check_shapes(a, b, c, Store::replace);
  check_bias(bias, a, c);
  multiply_rows(a, b, c, Store::replace, values_of({bias}));
}

}  // namespace lockstep::kernels
