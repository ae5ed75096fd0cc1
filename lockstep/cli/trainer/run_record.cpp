// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/run_record.h"

#include <algorithm>
#include <bit>
#include <sstream>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::cli {
namespace {

std::span<const float> part_of(std::span<const float> flat, const model::Place& place) {
  return flat.subspan(static_cast<std::size_t>(place.first), static_cast<std::size_t>(place.count));
}

}  // namespace

std::uint64_t digest_of(std::span<const float> values) {
  std::uint64_t digest = values.size();
  for (const float value : values) {
    // For one value this maps digests one to one, and for one digest values.
    digest = (std::rotl(digest, 27) ^ std::bit_cast<std::uint32_t>(value)) * 0x9E3779B97F4A7C15U;
  }
  return digest;
}

void record_report(const train::StepReport& report, RunRecord& record) {
  record.push_back({report.step, "the loss", std::bit_cast<std::uint64_t>(report.loss)});
  record.push_back({report.step, "the gradient norm", std::bit_cast<std::uint64_t>(report.gradient_norm)});
}

void record_state(std::int64_t step, const train::StepState& state, RunRecord& record) {
  const auto add = [&](const char* what, std::span<const float> flat) {
    const model::FlatLayout& layout = state.layout;
    for (std::size_t i = 0; i < layout.specs().size(); ++i) {
      record.push_back({step, fmt::format("{} of {}", what, layout.specs()[i].name),
                        digest_of(part_of(flat, layout.places()[i]))});
    }
  };
  add("the gradient", nn::floats_of(state.runner.gather_gradients()));
  add("the weights", nn::floats_of(state.weights.gather_master()));
}

std::string to_text(const RunRecord& record) {
  std::string text;
  for (const RecordedFact& fact : record)
    text += fmt::format("{} {:x} {}\n", fact.step, fact.bits, fact.what);
  return text;
}

RunRecord parse_record(std::string_view text) {
  RunRecord record;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    RecordedFact fact;
    words >> fact.step >> std::hex >> fact.bits >> std::ws;
    LOCKSTEP_CHECK(words && std::getline(words, fact.what), "a line of a record: " + line);
    record.push_back(std::move(fact));
  }
  return record;
}

std::optional<RecordedFact> first_difference(const RunRecord& one, const RunRecord& other) {
  const auto [here, there] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  if (here != one.end()) return *here;
  if (there != other.end()) return *there;
  return std::nullopt;
}

}  // namespace lockstep::cli
