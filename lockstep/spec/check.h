// SPDX-License-Identifier: Apache-2.0
//
// What holds between the keys of one run, whatever the number of workers (workload.h has the rest).
#pragma once

#include <map>
#include <string>

#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// Where keys were set, by full name, for errors.
using Places = std::map<std::string, std::string, std::less<>>;

// Replaces the zeros of the model that stand for what follows from other keys. Does nothing the second time.
void fill_model(RunSpec& run);

// Every key is within its own limits already. UsageError for keys that contradict each other.
void check_run(const RunSpec& run, const Places& places = {});

// Of a run as somebody gives it: UsageError for keys of `places` that others leave without effect. It says
// nothing about runs that were saved, for older versions let such keys pass, nor about what was made of a run
// since.
void check_effects(const RunSpec& run, const Places& places);

}  // namespace lockstep::spec
