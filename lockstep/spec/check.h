// SPDX-License-Identifier: Apache-2.0
//
// What holds between the keys of one run, whatever the number of workers (workload.h has the rest).
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// Where keys were set, by full name, for errors.
using Places = std::map<std::string, std::string, std::less<>>;

// Which say how the stages of a pipeline are made; without effect where there is one.
inline constexpr std::array<std::string_view, 3> kStageKeys = {
    "parallelism.schedule", "parallelism.virtual_stages", "parallelism.part_blocks"};

// Replaces the zeros of the model that stand for what follows from other keys. Does nothing the second time.
void fill_model(RunSpec& run);

// Every key is within its own limits already. UsageError for keys that contradict each other.
void check_run(const RunSpec& run, const Places& places = {});

// Of a run as somebody gives it: UsageError for keys that others leave without effect. It says nothing about
// runs that were saved, for older versions let such keys pass, nor about what was made of a run since.
void check_effects(const RunSpec& run, const Places& places);

}  // namespace lockstep::spec
