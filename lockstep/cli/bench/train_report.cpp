// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/train_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lockstep::cli {
namespace {

Spread spread_over(const TrainMeasurement& measurement, auto value_of) {
  std::vector<double> values;
  for (const TrainTurn& turn : measurement.turns) values.push_back(value_of(turn));
  return spread_of(values);
}

}  // namespace

std::vector<TrainFigures> figures_of(std::span<const TrainMeasurement> measurements, const TrainWork& work) {
  std::vector<TrainFigures> systems;
  const double peak =
      spread_over(measurements.front(), [](const TrainTurn& turn) { return turn.gemm_peak_gflops; }).median;
  for (const TrainMeasurement& measurement : measurements) {
    TrainFigures figures;
    figures.system = measurement.system;
    figures.tokens_per_s =
        spread_over(measurement, [&](const TrainTurn& turn) { return work.tokens_per_step / turn.step_s; });
    figures.gflops = figures.tokens_per_s.median * work.flops_per_token / 1e9;
    figures.gemm_peak_gflops = peak;
    figures.mfu = figures.gflops / peak;
    figures.step_ms = spread_over(measurement, [](const TrainTurn& turn) { return turn.step_s * 1e3; });
    figures.peak_rss_mib =
        spread_over(measurement, [](const TrainTurn& turn) { return turn.peak_rss_mib; }).median;
    systems.push_back(std::move(figures));
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
    line["step_ms"] = figures.step_ms.median;
    line["peak_rss_mib"] = figures.peak_rss_mib;
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
  constexpr std::string_view kRow = "{:<12} {:>9} {:>16} {:>8} {:>10} {:>6} {:>9} {:>13}  {}\n";
  std::string rows = fmt::format(kRow, "system", "tokens/s", "min..max", "GFLOP/s", "GEMM peak", "MFU",
                                 "step ms", "peak RSS MiB", "lockstep is");
  for (const TrainFigures& figures : systems) {
    const TrainFigures& ours = systems.front();
    const bool other = &figures != &ours;
    rows +=
        fmt::format(kRow, figures.system, fmt::format("{:.1f}", figures.tokens_per_s.median),
                    fmt::format("{:.1f}..{:.1f}", figures.tokens_per_s.min, figures.tokens_per_s.max),
                    fmt::format("{:.1f}", figures.gflops), fmt::format("{:.1f}", figures.gemm_peak_gflops),
                    fmt::format("{:.0f}%", figures.mfu * 100), fmt::format("{:.1f}", figures.step_ms.median),
                    fmt::format("{:.0f}", figures.peak_rss_mib),
                    other ? fmt::format("{:.2f}x as fast, in {:.2f}x the memory",
                                        ours.tokens_per_s.median / figures.tokens_per_s.median,
                                        ours.peak_rss_mib / figures.peak_rss_mib)
                          : "");
  }
  return rows;
}

}  // namespace lockstep::cli
