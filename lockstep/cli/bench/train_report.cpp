// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/train_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lockstep::cli {
namespace {

// `value_of` gets the number of the turn.
Spread spread_over(const TrainMeasurement& measurement, auto value_of) {
  std::vector<double> values;
  for (std::size_t turn = 0; turn < measurement.turns.size(); ++turn) values.push_back(value_of(turn));
  return spread_of(values);
}

}  // namespace

std::vector<TrainFigures> figures_of(std::span<const TrainMeasurement> measurements, const TrainWork& work) {
  const std::vector<TrainTurn>& ours = measurements.front().turns;
  std::vector<TrainFigures> systems;
  for (const TrainMeasurement& measurement : measurements) {
    const auto over_turns = [&](auto value_of) { return spread_over(measurement, value_of); };
    const std::vector<TrainTurn>& turns = measurement.turns;
    const auto tokens_per_s = [&](std::size_t turn) { return work.tokens_per_step / turns[turn].step_s; };
    const auto gflops = [&](std::size_t turn) { return tokens_per_s(turn) * work.flops_per_token / 1e9; };
    const auto peak = [&](std::size_t turn) { return ours[turn].gemm_peak_gflops; };
    systems.push_back(
        {.system = measurement.system,
         .tokens_per_s = over_turns(tokens_per_s),
         .gflops = over_turns(gflops).median,
         .gemm_peak_gflops = over_turns(peak).median,
         .mfu = over_turns([&](std::size_t turn) { return gflops(turn) / peak(turn); }).median,
         .step_ms = over_turns([&](std::size_t turn) { return turns[turn].step_s * 1e3; }).median,
         .peak_rss_mib = over_turns([&](std::size_t turn) { return turns[turn].peak_rss_mib; }).median,
         .predicted_rss_mib = turns.front().predicted_rss_mib});
  }
  return systems;
}

std::string train_json(std::span<const TrainFigures> systems) {
  std::string lines;
  for (const TrainFigures& figures : systems) {
    nlohmann::ordered_json line;
    line["system"] = figures.system;
    line["tokens_per_s"] = figures.tokens_per_s.median;
    line["tokens_per_s_min"] = figures.tokens_per_s.min;
    line["tokens_per_s_max"] = figures.tokens_per_s.max;
    line["gflops"] = figures.gflops;
    line["gemm_peak_gflops"] = figures.gemm_peak_gflops;
    line["mfu"] = figures.mfu;
    line["step_ms"] = figures.step_ms;
    line["peak_rss_mib"] = figures.peak_rss_mib;
    if (figures.predicted_rss_mib > 0) line["predicted_rss_mib"] = figures.predicted_rss_mib;
    lines += line.dump() + "\n";
  }
  for (const TrainFigures& other : systems.subspan(1)) {
    nlohmann::ordered_json line;
    line["ratios"] = systems.front().system + " / " + other.system;
    line["tokens_per_s"] = systems.front().tokens_per_s.median / other.tokens_per_s.median;
    line["peak_rss_mib"] = systems.front().peak_rss_mib / other.peak_rss_mib;
    lines += line.dump() + "\n";
  }
  return lines;
}

std::string train_table(std::span<const TrainFigures> systems) {
  constexpr std::string_view kRow = "{:<12} {:>9} {:>16} {:>8} {:>10} {:>6} {:>9} {:>13} {:>10}  {}\n";
  std::string rows = fmt::format(kRow, "system", "tokens/s", "min..max", "GFLOP/s", "GEMM peak", "MFU",
                                 "step ms", "peak RSS MiB", "predicted", "lockstep is");
  for (const TrainFigures& figures : systems) {
    const TrainFigures& ours = systems.front();
    const bool other = &figures != &ours;
    rows +=
        fmt::format(kRow, figures.system, fmt::format("{:.1f}", figures.tokens_per_s.median),
                    fmt::format("{:.1f}..{:.1f}", figures.tokens_per_s.min, figures.tokens_per_s.max),
                    fmt::format("{:.1f}", figures.gflops), fmt::format("{:.1f}", figures.gemm_peak_gflops),
                    fmt::format("{:.0f}%", figures.mfu * 100), fmt::format("{:.1f}", figures.step_ms),
                    fmt::format("{:.0f}", figures.peak_rss_mib),
                    figures.predicted_rss_mib > 0 ? fmt::format("{:.0f}", figures.predicted_rss_mib) : "",
                    other ? fmt::format("{:.2f}x as fast, in {:.2f}x the memory",
                                        ours.tokens_per_s.median / figures.tokens_per_s.median,
                                        ours.peak_rss_mib / figures.peak_rss_mib)
                          : "");
  }
  return rows;
}

}  // namespace lockstep::cli
