// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/pipelines.h"

#include <fmt/format.h>

namespace lockstep::schedule {

void for_each_pipeline(const PipelineSizes& sizes, const std::function<void(const PipelineSpec&)>& body) {
  for (const PipelineSchedule schedule : kPipelineSchedules) {
    const int most_virtual = schedule == PipelineSchedule::interleaved ? sizes.most_virtual_stages : 1;
    for (int stages = 1; stages <= sizes.most_stages; ++stages) {
      for (int micro_batches = 1; micro_batches <= sizes.most_micro_batches; ++micro_batches) {
        for (int virtual_stages = 1; virtual_stages <= most_virtual; ++virtual_stages) {
          body({schedule, stages, micro_batches, virtual_stages});
        }
      }
    }
  }
}

std::string shown(const PipelineSpec& spec) {
  return fmt::format("{} with {} stages, {} micro-batches, {} virtual stages", name_of(spec.schedule),
                     spec.stages, spec.micro_batches, spec.virtual_stages);
}

std::string shown(const Pipeline& pipeline) {
  std::string text;
  for (const PipelineProgram& program : pipeline.programs) {
    for (const PipelineEntry& entry : program) text += to_string(entry) + " ";
    text += "\n";
  }
  return text;
}

}  // namespace lockstep::schedule
