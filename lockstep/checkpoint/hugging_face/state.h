// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/hugging_face/folder.h"

namespace lockstep::checkpoint {

// A parameter in memory, and how files have it.
struct StateTensor {
  std::string name;
  std::string other_name = {};      // that some files have instead; empty: none
  std::vector<std::int64_t> shape;  // in memory, where it is row-major
  bool transposed = false;          // in files, which is for matrices only
  std::span<float> values;          // must outlive whatever is made of it; empty: not wanted
};

// Rounded to `dtype`: fp32, bf16 or fp16.
OutgoingTensor outgoing(const StateTensor& tensor, DType dtype);

// Fills the values of all tensors from the folder; those that are not wanted are checked only. UsageError
// names the first tensor that the folder does not have, that has another shape or a type other than those
// above, and the first one of the folder that is not among `tensors`, unless `may_be_ignored` says so of its
// name.
void read_state(const ModelFolder& folder, std::span<const StateTensor> tensors,
                const std::function<bool(std::string_view)>& may_be_ignored);

}  // namespace lockstep::checkpoint
