// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/bench/statistics.h"

namespace lockstep::cli {

// What one run of one system came to.
struct TrainTurn {
  double step_s = 0;
  double peak_rss_mib = 0;
  double gemm_peak_gflops = 0;   // 0: not measured by this system
  double predicted_rss_mib = 0;  // 0: not predicted by this system
};

struct TrainMeasurement {
  std::string system;
  std::vector<TrainTurn> turns;  // at least one
};

// What a step is, for all systems.
struct TrainWork {
  double tokens_per_step = 0;
  double flops_per_token = 0;
};

// The figures of a system: medians over its turns.
struct TrainFigures {
  std::string system;
  Spread tokens_per_s;
  double gflops = 0;
  double gemm_peak_gflops = 0;  // of all workers together
  double mfu = 0;
  double step_ms = 0;
  double peak_rss_mib = 0;
  double predicted_rss_mib = 0;  // 0: this system predicts nothing
};

// In the order of the measurements, which have the same number of turns and of which the first is ours. A
// machine's speed changes with time: the peak that a turn is measured against is that of the same turn. Pure.
std::vector<TrainFigures> figures_of(std::span<const TrainMeasurement> measurements, const TrainWork& work);

// One JSON object per line: the systems, then ours over each other one. Or a table.
std::string train_json(std::span<const TrainFigures> systems);
std::string train_table(std::span<const TrainFigures> systems);

}  // namespace lockstep::cli
