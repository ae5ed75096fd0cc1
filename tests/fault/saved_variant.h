// SPDX-License-Identifier: Apache-2.0
//
// What checkpoint_writer saves, and what is found when it was broken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/error.h"

#include "tests/checkpoint/saved.h"

namespace lockstep::checkpoint::testing {

inline constexpr std::int64_t kColumns = 1024;

// Two matrices of 4 KiB a row.
inline std::vector<FullTensor> variant_tensors(int variant, std::int64_t rows) {
  return {full_tensor("model.a", {rows, kColumns}, variant),
          full_tensor("optimizer.m.a", {rows, kColumns}, variant)};
}

// Half of the rows of each on one of two ranks.
inline Cut cut_by_rows(std::int64_t rows) {
  const auto half = static_cast<std::size_t>(rows / 2 * kColumns);
  const std::size_t rest = static_cast<std::size_t>(rows * kColumns) - half;
  const Runs first = {.first = 0, .length = half, .distance = half, .count = 1};
  const Runs second = {.first = half, .length = rest, .distance = rest, .count = 1};
  return {{{0, first}, {1, first}}, {{0, second}, {1, second}}};
}

// Of the newest that is committed; all that are must be good, and there must be one: Error otherwise.
inline int newest_variant(const std::string& store) {
  int newest = 0;
  for (const Listed& listed : CheckpointStore(store).committed()) {
    Checkpoint checkpoint(listed.path);
    checkpoint.verify();
    const std::vector<float> values = read_all(checkpoint, "model.a");
    const int variant = static_cast<int>(values.front());
    const std::int64_t rows = checkpoint.tensor("model.a").shape[0];
    LOCKSTEP_CHECK(values == variant_tensors(variant, rows)[0].values, listed.path + " has other values");
    if (newest == 0) newest = variant;
  }
  LOCKSTEP_CHECK(newest != 0, "no checkpoint in " + store);
  return newest;
}

}  // namespace lockstep::checkpoint::testing
