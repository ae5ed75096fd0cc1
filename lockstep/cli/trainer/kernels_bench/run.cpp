// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/cpu.h"
#include "lockstep/base/seconds_since.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/statistics.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/kernels_bench/cases.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/mesh/range.h"
#include "lockstep/train/gemm_peak.h"

namespace lockstep::cli {
namespace {

constexpr const char* kNotes =
    "Sizes are those of gpt2-124m with 1024 tokens. Products are compared with our GEMM on 1024 x 1024 x "
    "1024, "
    "everything else with a copy by memcpy that moves as many bytes on as many threads; every byte that must "
    "be read or written counts once. A figure is the median over turns, each with its limit beside it.";

struct Options {
  std::string kernels;
  std::string dtypes = "bf16,fp32";
  int threads = 0;
  int turns = 7;
  double turn_ms = 40;
  bool json = false;
};

struct Figures {
  std::string kernel;
  DType dtype = DType::fp32;
  bool is_product = false;
  Spread time_us = {};
  double rate = 0;   // GFLOP/s or GB/s
  double share = 0;  // of the limit
};

double seconds_of(const std::function<void()>& call, std::size_t times) {
  const auto began = Clock::now();
  for (std::size_t i = 0; i < times; ++i) call();
  return seconds_since(began) / static_cast<double>(times);
}

// Reads and writes `bytes` together.
std::function<void()> copy_of(std::size_t bytes, int threads) {
  const std::size_t half = bytes / 2;
  auto from = std::make_shared<std::vector<std::byte>>(half, std::byte{1});
  auto to = std::make_shared<std::vector<std::byte>>(half);
  return [=] {
    const auto parts = static_cast<std::size_t>(threads);
    kernels::parallel_for(parts, [&](std::size_t part) {
      const Range range = chunk_range(half, parts, part);
      std::memcpy(to->data() + range.begin, from->data() + range.begin, range.size());
    });
  };
}

Figures measure(const KernelCase& which, DType dtype, const Options& options) {
  const KernelWork work = which.make(dtype);
  const bool is_product = work.flops > 0;
  const std::function<void()> copy = is_product ? nullptr : copy_of(work.bytes, options.threads);
  work.call();
  if (copy) copy();
  const std::size_t times = iterations_for_turn(seconds_of(work.call, 1) * 1e6, options.turn_ms * 1e3);
  std::vector<double> times_us, shares;
  for (int turn = 0; turn < options.turns; ++turn) {
    const double taken = seconds_of(work.call, times);
    const double limit = is_product
                             ? work.flops / (train::measured_gemm_peak(dtype, comm::Communicator()) * 1e9)
                             : seconds_of(copy, times);
    times_us.push_back(taken * 1e6);
    shares.push_back(limit / taken);
  }
  Figures figures = {
      .kernel = which.name, .dtype = dtype, .is_product = is_product, .time_us = spread_of(times_us)};
  figures.rate = (is_product ? work.flops : static_cast<double>(work.bytes)) / figures.time_us.median / 1e3;
  figures.share = spread_of(shares).median;
  return figures;
}

std::string json_line(const Figures& figures, int threads) {
  nlohmann::ordered_json line;
  line["kernel"] = figures.kernel;
  line["dtype"] = name_of(figures.dtype);
  line["threads"] = threads;
  line["time_us"] = figures.time_us.median;
  line["time_us_min"] = figures.time_us.min;
  line["time_us_max"] = figures.time_us.max;
  line[figures.is_product ? "gflops" : "gbps"] = figures.rate;
  line["share_of_limit"] = figures.share;
  return line.dump() + "\n";
}

constexpr std::string_view kRow = "{:<23} {:<5} {:>11} {:>20} {:>15} {:>9}\n";

std::string table_row(const Figures& figures) {
  return fmt::format(kRow, figures.kernel, name_of(figures.dtype),
                     fmt::format("{:.1f}", figures.time_us.median),
                     fmt::format("{:.1f}..{:.1f}", figures.time_us.min, figures.time_us.max),
                     fmt::format("{:.1f} {}", figures.rate, figures.is_product ? "GFLOP/s" : "GB/s"),
                     fmt::format("{:.0f}%", 100 * figures.share));
}

std::vector<KernelCase> chosen_cases(const std::string& names) {
  std::vector<KernelCase> cases = pass_cases();
  for (KernelCase& each : update_cases()) cases.push_back(std::move(each));
  if (names.empty()) return cases;
  std::vector<std::string> known;
  for (const KernelCase& each : cases) known.push_back(each.name);
  const std::vector<std::string> wanted = split_list(names, "--kernel");
  for (const std::string& name : wanted) expect_one_of("--kernel", name, known);
  std::erase_if(cases, [&](const KernelCase& each) { return std::ranges::count(wanted, each.name) == 0; });
  return cases;
}

std::vector<DType> chosen_dtypes(const std::string& names) {
  std::vector<DType> dtypes;
  for (const std::string& name : split_list(names, "--dtype")) {
    expect_one_of("--dtype", name, std::vector<std::string>{"bf16", "fp16", "fp32"});
    dtypes.push_back(parse_dtype(name));
  }
  return dtypes;
}

void declare(CLI::App& app, Options& options) {
  app.footer(kNotes);
  app.add_option("--kernel", options.kernels, "Kernels, separated by commas; all of them if not given");
  app.add_option("--dtype", options.dtypes, "Separated by commas: bf16, fp16, fp32")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads; 0: one for each core")
      ->check(whole_number(0, 4096))
      ->capture_default_str();
  app.add_option("--turns", options.turns,
                 "Turns of each kernel, at least 5: fewer say nothing about the spread")
      ->check(whole_number(5, 1000))
      ->capture_default_str();
  app.add_option("--turn-ms", options.turn_ms, "How long a turn takes, in milliseconds")
      ->check(number(0.001, 60'000))
      ->capture_default_str();
  app.add_flag("--json", options.json, "One JSON object per line");
}

}  // namespace

int run_kernel_bench(const std::vector<std::string>& arguments, std::ostream& out) {
  CLI::App app("Measures the kernels of training against what the machine can do.", "lockstep bench kernels");
  Options options;
  declare(app, options);
  check_arguments(app, app.get_name(), arguments);
  std::string help;
  if (parse(app, arguments, help)) {
    print(out, help);
    return kDone;
  }
  const std::vector<KernelCase> cases = chosen_cases(options.kernels);
  const std::vector<DType> dtypes = chosen_dtypes(options.dtypes);
  if (options.threads == 0) options.threads = usable_cores();
  kernels::set_threads(options.threads);
  if (!options.json)
    print(out, fmt::format(kRow, "kernel", "dtype", "time us", "min..max", "rate", "of limit"));
  for (const KernelCase& each : cases) {
    for (DType dtype : dtypes) {
      const Figures figures = measure(each, dtype, options);
      print(out, options.json ? json_line(figures, options.threads) : table_row(figures));
    }
  }
  return kDone;
}

}  // namespace lockstep::cli
