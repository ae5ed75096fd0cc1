// SPDX-License-Identifier: Apache-2.0
//
// The first line is a flag with its value, when it is not empty; the rest is a run file.
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  std::vector<std::string> flags;
  if (const std::string_view flag = input.line(); !flag.empty()) flags.emplace_back(flag);
  const std::string_view text = input.rest();
  spec::RunSpec run;
  if (!fuzz::accepts<UsageError>([&] { run = spec::parse_run(text, "run.toml", flags); })) return 0;

  fuzz::require(spec::parse_run(spec::to_toml(run), "again.toml") == run, "a run survives its text");
  fuzz::require(spec::parameter_count(run.model) > 0, "a model has parameters");
  fuzz::require(spec::flops_per_token(run.model, run.training.seq_len) > 0, "a token costs something");
  fuzz::accepts<UsageError>([&] {
    const spec::Workload workload = spec::workload_of(run, 3);
    fuzz::require(workload.lanes >= workload.data_parallel && workload.tokens_per_step > 0,
                  "every worker has work");
    const spec::RunSpec fixed = spec::settled(run, 3);
    fuzz::require(spec::workload_of(fixed, 3) == workload, "a workload is its own");
  });
  return 0;
}
