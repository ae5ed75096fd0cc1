// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace lockstep::cli {

// `lockstep chaos ARGUMENTS...`: prints the report and gives the exit code. Errors as exceptions.
int run_chaos(const std::vector<std::string>& arguments, std::ostream& out);

}  // namespace lockstep::cli
