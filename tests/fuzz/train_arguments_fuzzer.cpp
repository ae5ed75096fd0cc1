// SPDX-License-Identifier: Apache-2.0
//
// What follows `lockstep train`, one argument per line.
#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/cli/trainer/train_arguments.h"
#include "lockstep/spec/load.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> arguments = fuzz::Input(data, size).lines();
  fuzz::accepts<UsageError>([&] {
    const cli::TrainArguments split = cli::split_arguments("train", arguments);
    fuzz::require(!split.file.empty(), "there is a run");
    fuzz::require(split.workers >= 0 && split.workers <= kMaxWorld, "workers are within their limits");
    spec::parse_run("", split.file, split.key_flags);
  });
  return 0;
}
