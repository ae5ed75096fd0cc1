// SPDX-License-Identifier: Apache-2.0
//
// What follows `lockstep chaos RUN.toml`, one argument per line. The run file is empty.
#include "lockstep/base/error.h"
#include "lockstep/cli/chaos/options.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile run("");
  std::vector<std::string> arguments = fuzz::Input(data, size).lines();
  // First, so that another file is one too many.
  arguments.insert(arguments.begin(), run.path());
  std::string help;
  std::optional<cli::ChaosOptions> options;
  if (!fuzz::accepts<UsageError>([&] { options = cli::parse_chaos_options(arguments, help); })) return 0;
  fuzz::require(options || !help.empty(), "without options there is help");
  if (!options) return 0;
  const cli::PlanOptions& faults = options->faults;
  fuzz::require(faults.workers >= 2, "who is left goes on");
  fuzz::require(faults.duration_s > 0 && faults.mtbf_s > 0 && faults.least_gap_s >= 0, "faults have times");
  fuzz::require(faults.kinds.empty() != faults.exactly.empty(), "there are faults, of kinds or counted");
  fuzz::require(!options->output.empty(), "what is written has a place");
  cli::plan_faults(faults);
  return 0;
}
