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

void record_step(const train::StepReport& report, const train::StepState& state, RunRecord& record) {
  const auto add = [&](const char* what, std::span<const float> flat) {
    const model::FlatLayout& layout = state.layout;
    for (std::size_t i = 0; i < layout.specs().size(); ++i) {
      record.push_back(
          {report.step, what, layout.specs()[i].name, digest_of(part_of(flat, layout.places()[i]))});
    }
  };
  add("gradient", nn::floats_of(state.runner.gather_gradients()));
  add("weights", nn::floats_of(state.weights.gather_master()));
  record.push_back({report.step, "loss", "", std::bit_cast<std::uint64_t>(report.loss)});
  record.push_back({report.step, "gradient norm", "", std::bit_cast<std::uint64_t>(report.gradient_norm)});
}

std::string to_text(const RunRecord& record) {
  std::string text;
  for (const RecordedFact& fact : record)
    text += fmt::format("{}\t{:x}\t{}\t{}\n", fact.step, fact.bits, fact.what, fact.tensor);
  return text;
}

RunRecord parse_record(std::string_view text) {
  RunRecord record;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    RecordedFact fact;
    words >> fact.step >> std::hex >> fact.bits >> std::ws;
    LOCKSTEP_CHECK(words && std::getline(words, fact.what, '\t') && !words.eof(),
                   "a line of a record: " + line);
    std::getline(words, fact.tensor);
    record.push_back(std::move(fact));
  }
  return record;
}

std::optional<RecordedDifference> first_difference(const RunRecord& expected,
                                                   const std::vector<RunRecord>& of_ranks) {
  std::optional<RecordedDifference> first;
  std::ptrdiff_t first_place = 0;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const RunRecord& record = of_ranks[rank];
    const auto [here, there] = std::mismatch(expected.begin(), expected.end(), record.begin(), record.end());
    if (here == expected.end() && there == record.end()) continue;
    const std::ptrdiff_t place = here - expected.begin();
    if (first && first_place <= place) continue;
    first = {.rank = static_cast<int>(rank), .fact = here != expected.end() ? *here : *there};
    first_place = place;
  }
  return first;
}

std::string describe(const RecordedFact& fact) {
  return fmt::format("step {}, the {}{}{}", fact.step, fact.what, fact.tensor.empty() ? "" : " of ",
                     fact.tensor);
}

}  // namespace lockstep::cli
