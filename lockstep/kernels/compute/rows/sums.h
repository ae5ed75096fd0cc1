// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows in a fixed order.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace lockstep::kernels {

// sums = a + b. `sums` may be one of them.
void add(std::span<const float> a, std::span<const float> b, std::span<float> sums);

// The sum over all rows of what add_row(row, partial) adds to the `columns` floats of `partial`. Rows are cut
// into blocks by their number alone, each is summed from zero in the order of its rows, and the blocks are
// added in their order: the number of threads does not show. The result is a buffer of the calling thread,
// valid until its next call; zeros if there are no rows.
std::span<const float> sum_rows(std::size_t rows, std::size_t columns,
                                const std::function<void(std::size_t, std::span<float>)>& add_row);

}  // namespace lockstep::kernels
