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
  std::string what;        // "the loss", "the weights of h.0.ln_1.weight"
  std::uint64_t bits = 0;  // of the number, or a digest of the tensor
  bool operator==(const RecordedFact&) const = default;
};
using RunRecord = std::vector<RecordedFact>;

void record_report(const train::StepReport& report, RunRecord& record);
// Gradients and weights, each parameter by itself. All ranks call it together.
void record_state(std::int64_t step, const train::StepState& state, RunRecord& record);

// A digest in which two tensors that differ in one element always differ.
std::uint64_t digest_of(std::span<const float> values);

std::string to_text(const RunRecord& record);
RunRecord parse_record(std::string_view text);  // InternalError for what to_text() has not written

// The first fact that only one of the two has; none when they are the same.
std::optional<RecordedFact> first_difference(const RunRecord& one, const RunRecord& other);

}  // namespace lockstep::cli
