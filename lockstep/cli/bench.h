// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace lockstep::cli {

// `lockstep bench ARGUMENTS...`: the arguments after "bench". Results go to `out`. Returns the exit code;
// errors that base/error.h lists are thrown, so that one place turns them into sentences and exit codes.
int run_bench(const std::vector<std::string>& arguments, std::ostream& out);

}  // namespace lockstep::cli
