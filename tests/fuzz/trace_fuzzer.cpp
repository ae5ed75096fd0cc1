// SPDX-License-Identifier: Apache-2.0
//
// One byte that says how large the pieces are, then a file for `lockstep trace`.
#include <cmath>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/cli/trace_bubble.h"
#include "lockstep/metrics/trace_file.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t piece = std::size_t{1} << (input.number<std::uint8_t>() % 16);
  const fuzz::MemoryFile file(input.rest());
  fuzz::accepts<DataError, UsageError>([&] {
    metrics::TraceReader reader(file.path());
    std::vector<cli::TracedPass> passes;
    for (std::string events = reader.next(piece); !events.empty(); events = reader.next(piece)) {
      for (const cli::TracedPass& pass : cli::passes_in(events, "trace.json")) passes.push_back(pass);
    }
    for (const cli::TracedPass& pass : passes) {
      fuzz::require(pass.step >= 0 && pass.rank >= 0 && pass.stage >= 0 && pass.part >= 0,
                    "a pass has a place");
    }
    const cli::TraceBubble bubble = cli::bubble_of(passes, "trace.json");
    fuzz::require(!bubble.stages.empty() && bubble.steps >= 1 && bubble.micro_batches >= 1,
                  "what is counted is there");
    fuzz::require(bubble.predicted >= 0 && bubble.predicted < 1, "a schedule computes something");
    fuzz::require(!cli::to_text(bubble).empty() && !cli::to_json(bubble).empty(), "it can be shown");
  });
  return 0;
}
