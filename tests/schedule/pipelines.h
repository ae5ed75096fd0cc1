// SPDX-License-Identifier: Apache-2.0
//
// The pipelines that tests go through: every schedule with stages 1..12, micro-batches 1..24 and, for
// interleaved, virtual stages 1..4.
#pragma once

#include <functional>
#include <string>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

inline constexpr std::array kPipelineSchedules = {
    PipelineSchedule::naive,       PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b,
    PipelineSchedule::interleaved, PipelineSchedule::zbh1,  PipelineSchedule::zbv,
};

struct PipelineSizes {
  int most_stages = 12;
  int most_micro_batches = 24;
  int most_virtual_stages = 4;
};

void for_each_pipeline(const PipelineSizes& sizes, const std::function<void(const PipelineSpec&)>& body);

std::string shown(const PipelineSpec& spec);
std::string shown(const Pipeline& pipeline);  // one line per rank

}  // namespace lockstep::schedule
