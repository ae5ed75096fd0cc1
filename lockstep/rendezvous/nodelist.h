// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous {

struct NodelistLimits {
  std::size_t max_hosts = 65'536;
  std::size_t max_name = 255;  // characters in one host name
};

// The hosts of a Slurm node list such as "node[01-04,7],gpu-a[1-2]b", in the order Slurm numbers its nodes:
// left to right, the last bracket of a name counting fastest. Numbers keep the width of the first number of
// their range ("[08-10]": 08, 09, 10).
// UsageError naming the position (counted from 1) and what was expected there, also when a limit is exceeded;
// nothing is expanded beyond the limits.
std::vector<std::string> expand_nodelist(std::string_view text, const NodelistLimits& limits = {});

}  // namespace lockstep::rendezvous
