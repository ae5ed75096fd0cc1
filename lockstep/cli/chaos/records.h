// SPDX-License-Identifier: Apache-2.0
//
// What a run has left behind of its steps and its generations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/cli/chaos/plan.h"

namespace lockstep::cli {

struct StepRecord {
  std::int64_t step = 0;
  double time_s = 0;  // when it was done, in Unix time
  double step_s = 0;
  std::optional<double> loss = std::nullopt;  // none: not recorded; NaN: not finite
  bool operator==(const StepRecord&) const = default;
};

// As lockstep/elastic/history.h writes them.
struct GenerationRecord {
  double time_s = 0;
  std::string event;
  std::int64_t step = 0;
  bool operator==(const GenerationRecord&) const = default;
};

struct InjectedFault {
  Fault fault;
  double time_s = 0;      // when it came, in Unix time
  double after_s = 0;     // and since the run's first step began
  std::int64_t step = 0;  // that was done last then
};

// In the order of their lines; a last line that is cut off is left out. DataError naming `file` for any other
// line that is no such record.
std::vector<StepRecord> parse_steps(std::string_view text, const std::string& file);
std::vector<GenerationRecord> parse_generations(std::string_view text, const std::string& file);

// The same of files; none when there is no such file.
std::vector<StepRecord> read_steps(const std::filesystem::path& file);
std::vector<GenerationRecord> read_generations(const std::filesystem::path& file);

// Of a file that is being written: its first record, and its last whole one, without reading what is between.
std::optional<StepRecord> first_step(const std::filesystem::path& file);
std::optional<StepRecord> last_step(const std::filesystem::path& file);

}  // namespace lockstep::cli
