// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/dropout/dropout.h"

#include <vector>

#include "lockstep/kernels/compute/dropout/check.h"
#include "lockstep/kernels/compute/dropout/row.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {
namespace {

// The numbers of elements first .. first + count - 1, valid until this thread's next call.
std::span<const std::uint32_t> numbers_of(const Dropout& dropout, std::uint64_t first, std::size_t count) {
  thread_local std::vector<std::uint32_t> numbers;
  const std::size_t skipped = first % 4;
  const std::size_t needed = (skipped + count + 3) / 4 * 4;
  if (numbers.size() < needed) numbers.resize(needed);
  random_numbers(dropout.key, dropout.stream, first / 4, std::span(numbers).first(needed));
  return std::span(numbers).subspan(skipped, count);
}

}  // namespace

void dropout(const Dropout& dropout, const ConstMatrix& in, const Matrix& out) {
  check_dropout(dropout, in, out);
  const std::uint32_t threshold = threshold_of(dropout);
  const float scale = 1.0F / (1.0F - dropout.probability);
  for_each_piece(in.rows, in.columns, [&](const Piece& piece) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, piece.of(out));
    keep_or_drop(buffers.read(RowBuffers::in, piece.of(in)),
                 numbers_of(dropout, dropout.first + piece.row * in.columns + piece.first, piece.count),
                 threshold, scale, result);
    RowBuffers::store(result, piece.of(out));
  });
}

}  // namespace lockstep::kernels
