// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace lockstep::cli {

// `lockstep bench memory ARGUMENTS...`, as run_bench() (bench.h): what a worker keeps of a model in memory at
// each ZeRO stage, predicted and measured.
int run_memory_bench(const std::vector<std::string>& arguments, std::ostream& out);

}  // namespace lockstep::cli
