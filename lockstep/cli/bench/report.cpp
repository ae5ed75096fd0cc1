// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/report.h"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/statistics.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kRow =
    "{:<9} {:<15} {:<17} {:<9} {:>10} {:>6} {:<6} {:>11} {:>21} {:>8} {:>8} {:<8} {}\n";

double algbw(const Measurement& measurement) {
  return gigabytes_per_second(measurement.contestant.what.bytes, measurement.time_us.median);
}

// None on one rank, where nothing goes over a bus.
std::optional<double> busbw(const Measurement& measurement) {
  const Contestant& contestant = measurement.contestant;
  if (contestant.crew->ranks() == 1) return std::nullopt;
  return algbw(measurement) * bus_factor(contestant.what.op, contestant.crew->ranks());
}

}  // namespace

std::string json_line(const Measurement& measurement) {
  const Contestant& contestant = measurement.contestant;
  nlohmann::ordered_json line;
  line["system"] = contestant.what.system;
  line["op"] = name_of(contestant.what.op);
  line["algorithm"] = contestant.algorithm;
  line["transport"] = contestant.transport;
  line["ranks"] = contestant.crew->ranks();
  line["bytes"] = contestant.what.bytes;
  line["dtype"] = name_of(contestant.what.dtype);
  line["registered"] = contestant.what.registered;
  if (!contestant.what.lanes.empty()) line["lanes"] = contestant.what.lanes;
  line["time_us"] = measurement.time_us.median;
  line["time_min_us"] = measurement.time_us.min;
  line["time_max_us"] = measurement.time_us.max;
  line["algbw_gbps"] = algbw(measurement);
  const std::optional<double> bus = busbw(measurement);
  line["busbw_gbps"] = bus ? nlohmann::ordered_json(*bus) : nullptr;
  line["correct"] = measurement.correct;
  return line.dump();
}

std::string comparison(const Measurement& ours, std::span<const Measurement> all) {
  std::string text;
  if (ours.contestant.what.system != "lockstep") return text;
  for (const Measurement& other : all) {
    const std::string& name = other.contestant.what.system;
    if (name == "lockstep" || ours.time_us.median <= 0) continue;
    const double ratio = other.time_us.median / ours.time_us.median;
    const bool is_limit = name == "memcpy" || name == "sockets";
    if (!text.empty()) text += ", ";
    text += is_limit ? fmt::format("{:.0f}% of {}", ratio * 100, name)
                     : fmt::format("{:.2f}x as fast as {}", ratio, name);
  }
  return text;
}

std::string table_head() {
  return fmt::format(kRow, "system", "op", "algorithm", "transport", "bytes", "dtype", "buffer", "time us",
                     "min..max", "algbw", "busbw", "correct", "comparison");
}

std::string table_rows(std::span<const Measurement> measurements) {
  std::string rows;
  for (const Measurement& measurement : measurements) {
    const Contestant& contestant = measurement.contestant;
    const Spread& time = measurement.time_us;
    const std::optional<double> bus = busbw(measurement);
    rows += fmt::format(kRow, contestant.what.system, name_of(contestant.what.op), contestant.algorithm,
                        contestant.transport, format_size(contestant.what.bytes),
                        name_of(contestant.what.dtype), contestant.what.registered ? "reg" : "plain",
                        fmt::format("{:.2f}", time.median), fmt::format("{:.2f}..{:.2f}", time.min, time.max),
                        fmt::format("{:.3f}", algbw(measurement)), bus ? fmt::format("{:.3f}", *bus) : "-",
                        measurement.correct ? "yes" : "NO", comparison(measurement, measurements));
  }
  return rows;
}

}  // namespace lockstep::cli
