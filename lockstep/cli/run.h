// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::cli {

// The whole program: `arguments` without the program's name. Returns the exit code; what goes wrong is one
// sentence on standard error.
int run(const std::vector<std::string>& arguments);

}  // namespace lockstep::cli
