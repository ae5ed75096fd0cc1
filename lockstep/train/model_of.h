// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/model/block.h"
#include "lockstep/spec/check.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/tensor_lanes.h"

namespace lockstep::train {

// The model that a loaded run describes.
model::Model model_of(const spec::Model& spec);

// How its layers can be divided.
Division division_of(const spec::Model& spec);
// UsageError unless the run's tensor lanes and tensor-parallel workers are such.
void require_division(const spec::RunSpec& run, const spec::Places& places = {});

}  // namespace lockstep::train
