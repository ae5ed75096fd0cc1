// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace lockstep::cli {

// `lockstep bench train ARGUMENTS...`, as run_bench() (bench.h).
int run_train_bench(const std::vector<std::string>& arguments, std::ostream& out);

}  // namespace lockstep::cli
