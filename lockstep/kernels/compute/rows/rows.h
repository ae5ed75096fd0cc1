// SPDX-License-Identifier: Apache-2.0
//
// Kernels that go row by row: rows as floats, copied only where they are not floats already, and spread over
// the threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/kernels/compute/matrix.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {

// Rows of one thread that live from call to call: allocated anew, they would cost a page fault every 4 KiB.
// The contents are unspecified when one is taken, and valid until the thread takes the same slot again.
class RowBuffers {
 public:
  // Those of the calling thread.
  static RowBuffers& mine();

  // `weight`, `bias` and `partial_sums` are taken by the thread that calls a kernel and read by all of its
  // threads, the others by each thread for the row it works on.
  enum Slot : std::size_t {
    weight,
    bias,
    partial_sums,
    in,
    gradient,
    second_in,
    out,
    second_out,
    slot_count
  };
  std::span<float> floats(Slot slot, std::size_t count);

  // The row's values: the row itself if it is fp32, otherwise a copy.
  std::span<const float> read(Slot slot, const ConstMatrix& matrix, std::size_t row = 0);
  // Where to compute the row's new values, and how to put them there: nothing is copied if it is fp32.
  std::span<float> target(Slot slot, const Matrix& matrix, std::size_t row = 0);
  static void store(std::span<const float> values, const Matrix& matrix, std::size_t row = 0);

 private:
  std::array<std::vector<float>, slot_count> slots_;
};

// Runs body(0) .. body(rows - 1) under the rules of parallel_for, several rows at a time.
template <typename Body>
void for_each_row(std::size_t rows, const Body& body) {
  constexpr std::size_t kTogether = 16;
  parallel_for((rows + kTogether - 1) / kTogether, [&](std::size_t item) {
    const std::size_t end = std::min(rows, (item + 1) * kTogether);
    for (std::size_t row = item * kTogether; row < end; ++row) body(row);
  });
}

// Some columns of one row: few enough that several of them as floats stay in the first-level cache.
struct Piece {
  std::size_t row;
  std::size_t first;
  std::size_t count;

  template <typename Byte>
  BasicMatrix<Byte> of(const BasicMatrix<Byte>& matrix) const {
    return matrix.part(row, 1, first, count);
  }
};

// For kernels that compute each element alone: runs body(piece) for all elements of rows x columns.
template <typename Body>
void for_each_piece(std::size_t rows, std::size_t columns, const Body& body) {
  constexpr std::size_t kMost = 512;
  for_each_row(rows, [&](std::size_t row) {
    for (std::size_t first = 0; first < columns; first += kMost)
      body(Piece{.row = row, .first = first, .count = std::min(kMost, columns - first)});
  });
}

// UsageError unless its elements are fp32, bf16 or fp16. `what`: "norm: the input".
void check_floating(const char* what, const ConstMatrix& matrix);
// UsageError "<what> is 2 x 3 of bf16 and must be ..." unless the matrix is so, and floating.
void check_matrix(const char* what, const ConstMatrix& matrix, std::size_t rows, std::size_t columns,
                  DType dtype);
void check_like(const char* what, const ConstMatrix& matrix, const ConstMatrix& other);
// UsageError unless there are `wanted` of them.
void check_count(const char* what, std::size_t count, std::size_t wanted);

}  // namespace lockstep::kernels
