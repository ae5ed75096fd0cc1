// SPDX-License-Identifier: Apache-2.0
//
// What the plain twins of the kernels share: rows as fp64, one after the other.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

std::vector<double> row_values(const ConstMatrix& matrix, std::size_t row);
void store_row(const std::vector<double>& values, const Matrix& matrix, std::size_t row);
void add_to(std::vector<double>& to, const std::vector<double>& from);
// Rounds once.
void add_to(std::span<float> to, const std::vector<double>& from);

}  // namespace lockstep::kernels
