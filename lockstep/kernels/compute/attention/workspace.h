// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// Queries and keys are taken in blocks of this many rows: their scores stay in the second-level cache.
inline constexpr std::size_t kQueryBlock = 128;
inline constexpr std::size_t kKeyBlock = 512;

// Memory of one thread that lives from call to call: allocated anew, it would cost a page fault every 4 KiB.
// The contents of a buffer are unspecified when it is taken.
class AttentionWorkspace {
 public:
  // That of the calling thread.
  static AttentionWorkspace& mine();

  // A matrix without gaps. Two that are used at the same time have different slots.
  enum Slot : std::size_t {
    scores,
    gradients,
    narrow_scores,
    narrow_gradients,
    sums,
    q,
    k,
    v,
    out,
    dout,
    dk,
    dv,
    slot_count
  };
  Matrix matrix(Slot slot, DType dtype, std::size_t rows, std::size_t columns);
  std::span<float> floats(Slot slot, std::size_t count);

  // Of the same values: `values` itself if its dtype is multiplied as it is, otherwise a copy in fp32.
  ConstMatrix multipliable(Slot slot, ConstMatrix values);
  // `values` (fp32) in the dtype that products with `multipliable` matrices want.
  ConstMatrix narrowed(Slot slot, const Matrix& values, DType dtype);

 private:
  std::vector<std::byte> slots_[slot_count];
};

inline std::span<float> float_row(const Matrix& matrix, std::size_t row) {
  return {reinterpret_cast<float*>(matrix.row(row)), matrix.columns};
}

}  // namespace lockstep::kernels
