// SPDX-License-Identifier: Apache-2.0
//
// What a rank knew after each step, to the bit, so that two runs can be compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/run.h"

namespace lockstep::cli {

// One thing that must be the same in both runs.
struct RecordedFact {
  std::int64_t step = 0;
  std::string what;        // "gradient" or "weights" of a tensor; "loss", "gradient norm"
  std::string tensor;      // h.0.ln_1.weight; empty for what is of none
  std::uint64_t bits = 0;  // of the number, or a digest of the tensor
  bool operator==(const RecordedFact&) const = default;
};
using RunRecord = std::vector<RecordedFact>;

// Gradients and weights, each parameter by itself, and then loss and gradient norm: these say less about
// where a difference comes from, and the first difference is the one that is told. All ranks call it
// together.
void record_step(const train::StepReport& report, const train::StepState& state, RunRecord& record);

// A digest in which two tensors that differ in one element always differ.
std::uint64_t digest_of(std::span<const float> values);

std::string to_text(const RunRecord& record);
RunRecord parse_record(std::string_view text);  // InternalError for what to_text() has not written

struct RecordedDifference {
  int rank = 0;
  RecordedFact fact;  // that only one of the two records has
  bool operator==(const RecordedDifference&) const = default;
};

// The earliest in which the record of a rank is not the expected one, of the lowest such rank; none when all
// are the same.
std::optional<RecordedDifference> first_difference(const RunRecord& expected,
                                                   const std::vector<RunRecord>& of_ranks);

// "step 1, the gradient of h.0.ln_1.weight"
std::string describe(const RecordedFact& fact);

}  // namespace lockstep::cli
