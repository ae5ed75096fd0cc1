// SPDX-License-Identifier: Apache-2.0
//
// One function per schedule, for make_pipeline(), which has checked the spec.
#pragma once

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

PipelineProgram naive_program(const PipelineSpec& spec, Rank rank);
PipelineProgram gpipe_program(const PipelineSpec& spec, Rank rank);
PipelineProgram one_f_one_b_program(const PipelineSpec& spec, Rank rank);
PipelineProgram interleaved_program(const PipelineSpec& spec, Rank rank);
PipelineProgram zbh1_program(const PipelineSpec& spec, Rank rank);
PipelineProgram zbv_program(const PipelineSpec& spec, Rank rank);

}  // namespace lockstep::schedule
