// SPDX-License-Identifier: Apache-2.0
//
// What follows `lockstep bench collectives` or `lockstep bench train`, one argument per line.
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/options.h"
#include "lockstep/cli/bench/train_options.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

namespace {

void read_collectives(const std::vector<std::string>& arguments) {
  std::string help;
  std::optional<cli::BenchOptions> options;
  if (!fuzz::accepts<UsageError>([&] { options = cli::parse_bench_options(arguments, help); })) return;
  fuzz::require(options || !help.empty(), "without options there is help");
  if (!options) return;
  fuzz::require(options->site.ranks >= 1 && options->site.ranks <= cli::kMaxBenchRanks,
                "ranks are within their limits");
  fuzz::require(!options->ops.empty() && !options->bytes.empty(), "there is something to measure");
  fuzz::require(options->turns >= 1, "it is measured at least once");
}

void read_train(const std::vector<std::string>& arguments) {
  std::string help;
  std::optional<cli::TrainBenchOptions> options;
  if (!fuzz::accepts<UsageError>([&] { options = cli::parse_train_bench_options(arguments, help); })) return;
  fuzz::require(options || !help.empty(), "without options there is help");
  if (!options) return;
  fuzz::require(options->workers >= 1 && options->turns >= 1, "somebody trains at least once");
  fuzz::require(options->run.training.steps >= 2, "a step is left to be counted");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> arguments = fuzz::Input(data, size).lines();
  read_collectives(arguments);
  read_train(arguments);
  return 0;
}
