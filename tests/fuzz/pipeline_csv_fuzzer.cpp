// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/pipeline/csv.h"
#include "lockstep/schedule/pipeline/timeline.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  schedule::Pipeline pipeline;
  if (!fuzz::accepts<UsageError>([&] { pipeline = schedule::parse_pipeline_csv(text, "fuzz.csv"); }))
    return 0;
  const schedule::PipelineCheck check = schedule::check_pipeline(pipeline);
  if (check.violation) {
    const auto rank = static_cast<std::size_t>(check.violation->rank);
    fuzz::require(rank < pipeline.programs.size(), "a violation names a rank");
    fuzz::require(check.violation->entry <= pipeline.programs[rank].size(), "a violation names an entry");
    fuzz::require(!check.violation->reason.empty(), "a violation says why");
    return 0;
  }
  const schedule::Timeline timeline = schedule::time_pipeline(pipeline);
  fuzz::require(timeline.bubble >= 0 && timeline.bubble < 1, "somebody computes");
  fuzz::require(schedule::parse_pipeline_csv(schedule::to_csv(pipeline), "again") == pipeline,
                "a pipeline survives its text");
  return 0;
}
