// SPDX-License-Identifier: Apache-2.0
//
// What a run has left behind of its steps and generations, and times that users type.
#include "lockstep/base/error.h"
#include "lockstep/cli/chaos/duration.h"
#include "lockstep/cli/chaos/records.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string text(input.rest());
  fuzz::accepts<DataError>([&] {
    const std::vector<cli::StepRecord> steps = cli::parse_steps(text, "metrics.jsonl");
    const fuzz::MemoryFile file(text);
    fuzz::require(cli::read_steps(file.path()) == steps, "a file is its text");
    const auto first = cli::first_step(file.path());
    const auto last = cli::last_step(file.path());
    fuzz::require(first.has_value() == !steps.empty() && last.has_value() == !steps.empty(),
                  "the first and the last are there");
    fuzz::require(!first || (*first == steps.front() && *last == steps.back()), "they are those of all");
  });
  fuzz::accepts<DataError>([&] { cli::parse_generations(text, "generations.jsonl"); });
  fuzz::accepts<UsageError>(
      [&] { fuzz::require(cli::parse_duration("--for", text) > 0, "a time takes a while"); });
  return 0;
}
