// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/pipeline/csv.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/pipeline/timeline.h"

namespace lockstep::schedule {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Takes what is before the next `separator`, and the separator.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Pipeline read() {
    if (text_.size() > kMaxPipelineCsvBytes) {
      throw UsageError(fmt::format("{}: {} bytes are too many for a schedule: at most {} are read", name_,
                                   text_.size(), kMaxPipelineCsvBytes));
    }
    while (!text_.empty()) {
      ++row_;
      std::string_view line = take_until(text_, '\n');
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (row_ == 1 && line.starts_with("placement")) {
        read_placement(line);
      } else {
        read_row(line);
      }
    }
    return finished();
  }

 private:
  void read_placement(std::string_view line) {
    take_until(line, ',');
    column_ = 2;
    const std::string_view shape = trimmed(line);
    if (shape == "v") {
      pipeline_.placement.shape = PlacementShape::v_shape;
    } else if (shape != "round-robin") {
      refuse(fmt::format("the placement is '{}': expected v or round-robin", shown(shape)));
    }
  }

  void read_row(std::string_view line) {
    column_ = 1;
    if (pipeline_.programs.size() == kMaxPipelineStages) {
      refuse(fmt::format("there are more than {} stages", kMaxPipelineStages));
    }
    PipelineProgram& program = pipeline_.programs.emplace_back();
    for (; !line.empty(); ++column_) {
      const std::string_view cell = trimmed(take_until(line, ','));
      if (!cell.empty()) program.push_back(parse_cell(cell));
    }
    column_ = 1;
    if (program.empty()) refuse("the row has no passes: every stage needs some");
  }

  PipelineEntry parse_cell(std::string_view cell) {
    const std::string_view whole = cell;
    PipelineEntry entry;
    const auto pass = std::find_if(kPasses.begin(), kPasses.end(),
                                   [&](Pass candidate) { return letter_of(candidate) == cell.front(); });
    if (pass == kPasses.end()) refuse_cell(whole);
    entry.pass = *pass;
    cell.remove_prefix(1);
    entry.micro_batch = take_number(cell, whole, "micro-batch", kMaxMicroBatches);
    if (cell.starts_with('.')) {
      cell.remove_prefix(1);
      entry.chunk = take_number(cell, whole, "chunk", kMaxVirtualStages);
    }
    if (!cell.empty()) refuse_cell(whole);
    pipeline_.micro_batches = std::max(pipeline_.micro_batches, entry.micro_batch + 1);
    pipeline_.placement.chunks = std::max(pipeline_.placement.chunks, entry.chunk + 1);
    return entry;
  }

  // Digits only: from_chars would take a sign.
  int take_number(std::string_view& cell, std::string_view whole, std::string_view what, int limit) {
    const std::size_t digits = std::min(cell.find_first_not_of("0123456789"), cell.size());
    if (digits == 0) refuse_cell(whole);
    int value = 0;
    const auto result = std::from_chars(cell.data(), cell.data() + digits, value);
    if (result.ec != std::errc() || value >= limit) {
      refuse(
          fmt::format("the {} of '{}' is too large: at most {} is possible", what, shown(whole), limit - 1));
    }
    cell.remove_prefix(digits);
    return value;
  }

  Pipeline finished() {
    Placement& placement = pipeline_.placement;
    placement.stages = static_cast<int>(pipeline_.programs.size());
    if (placement.stages == 0) throw UsageError(fmt::format("{}: there is no row with passes", name_));
    if (placement.shape == PlacementShape::v_shape && placement.chunks != 2) {
      throw UsageError(fmt::format("{}: a V has the chunks 0 and 1 on every stage, not {}", name_,
                                   placement.chunks == 1 ? "one only" : "more"));
    }
    if (std::int64_t{pipeline_.micro_batches} * placement.parts() > kMaxPipelinePasses) {
      throw UsageError(fmt::format(
          "{}: {} micro-batches through {} chunks on each of {} stages are too many: at most {} passes "
          "forward "
          "are possible",
          name_, pipeline_.micro_batches, placement.chunks, placement.stages, kMaxPipelinePasses));
    }
    return std::move(pipeline_);
  }

  // What a message can show of a cell.
  static std::string shown(std::string_view cell) {
    constexpr std::size_t kMost = 20;
    std::string text(cell.substr(0, kMost));
    std::replace_if(
        text.begin(), text.end(), [](char letter) { return letter < 0x20 || letter > 0x7e; }, '?');
    return cell.size() > kMost ? text + "..." : text;
  }

  [[noreturn]] void refuse_cell(std::string_view cell) const {
    refuse(
        fmt::format("'{}' is no pass: expected F, B, I or W and a micro-batch, as in F3, or W3.1 on chunk 1",
                    shown(cell)));
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw UsageError(fmt::format("{}: row {}, column {}: {}", name_, row_, column_, reason));
  }

  std::string_view text_;
  std::string_view name_;
  int row_ = 0;
  int column_ = 1;
  Pipeline pipeline_;
};

std::string row_of(const PipelineProgram& program, const std::vector<Timeline::Span>& spans, int columns) {
  std::string row;
  std::size_t next = 0;
  for (int column = 0; column < columns; ++column) {
    if (column > 0) row += ',';
    if (next < program.size() && static_cast<int>(spans[next].begin) == column) {
      row += to_string(program[next++]);
    }
  }
  return row;
}

std::string row_without_idle_cells(const PipelineProgram& program) {
  std::string row;
  for (const PipelineEntry& entry : program) row += (row.empty() ? "" : ",") + to_string(entry);
  return row;
}

}  // namespace

Pipeline parse_pipeline_csv(std::string_view text, std::string_view name) {
  return Reader(text, name).read();
}

std::string to_csv(const Pipeline& pipeline) {
  const Timeline timeline = time_pipeline(
      pipeline, {.forward = 1, .backward = 1, .backward_input = 1, .backward_weight = 1, .link = 0});
  const auto columns = static_cast<int>(timeline.makespan);
  const bool with_idle_cells = std::int64_t{columns} * pipeline.placement.stages <= kMaxCsvCells;
  std::string text = pipeline.placement.shape == PlacementShape::v_shape ? "placement,v\n" : "";
  for (std::size_t rank = 0; rank < pipeline.programs.size(); ++rank) {
    const PipelineProgram& program = pipeline.programs[rank];
    text +=
        with_idle_cells ? row_of(program, timeline.spans[rank], columns) : row_without_idle_cells(program);
    text += '\n';
  }
  return text;
}

}  // namespace lockstep::schedule
