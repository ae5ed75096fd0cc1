// SPDX-License-Identifier: Apache-2.0
//
// A command line, one argument per line.
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/options.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  std::vector<std::string> arguments;
  while (!input.empty()) arguments.emplace_back(input.line());
  std::string help;
  std::optional<cli::BenchOptions> options;
  if (!fuzz::accepts<UsageError>([&] { options = cli::parse_bench_options(arguments, help); })) return 0;
  if (!options) {
    fuzz::require(!help.empty(), "without options there is help");
    return 0;
  }
  fuzz::require(options->ranks >= 1 && options->ranks <= cli::kMaxBenchRanks,
                "ranks are within their limits");
  fuzz::require(!options->ops.empty() && !options->bytes.empty(), "there is something to measure");
  fuzz::require(options->turns >= 1, "it is measured at least once");
  return 0;
}
