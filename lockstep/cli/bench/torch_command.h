// SPDX-License-Identifier: Apache-2.0
//
// The job of a run, for the scripts of bench/ that do the same with PyTorch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/rendezvous/environment.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

inline constexpr const char* kPython = "/usr/bin/python3";

// UsageError, naming the flag that asks for the comparison, when the scripts cannot train such a model or
// batch on so many workers.
void require_torch_can(const spec::RunSpec& run, int workers, std::string_view flag);

// What a worker is told: how many threads it has, and the variables that say the same.
std::int64_t torch_threads(const spec::RunSpec& run, int workers);
rendezvous::Environment torch_environment(std::int64_t threads);

// The flags of bench/train/torch_gpt.py for model, batch, steps and threads.
std::vector<std::string> torch_flags(const spec::RunSpec& run, std::int64_t threads);

}  // namespace lockstep::cli
