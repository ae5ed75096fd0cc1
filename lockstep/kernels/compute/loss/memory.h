// SPDX-License-Identifier: Apache-2.0
//
// Memory of the thread that stays from call to call: it is large, and new memory would cost a page fault
// every 4 KiB. The contents are unspecified when it is taken, and valid until the thread takes it again.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::kernels {

// The logits of a chunk, and where each row is later replaced by its gradient.
inline std::span<float> chunk_memory(std::size_t floats) {
  thread_local std::vector<float> memory;
  if (memory.size() < floats) memory.resize(floats);
  return std::span(memory).first(floats);
}

// One row at a time in floats, on the thread that works on it.
inline std::span<float> row_memory(std::size_t columns) {
  thread_local std::vector<float> memory;
  if (memory.size() < columns) memory.resize(columns);
  return std::span(memory).first(columns);
}

}  // namespace lockstep::kernels
