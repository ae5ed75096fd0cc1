// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint_table.h"

namespace lockstep::test {

// The failpoints of an area, for the test that makes every one of them fail. tools/check_failpoints.py finds
// the areas of all calls, and refuses a failpoint in none of them: call it with the prefix itself.
inline std::vector<std::string> swept_failpoints(std::string_view area) {
  std::vector<std::string> names;
  for (const failpoint::Point& point : failpoint::kPoints) {
    if (point.name.starts_with(area)) names.emplace_back(point.name);
  }
  LOCKSTEP_CHECK(!names.empty(), "no failpoint begins with " + std::string(area));
  return names;
}

// A name as part of the name of a test.
inline std::string test_name_of(std::string point) {
  std::replace(point.begin(), point.end(), '.', '_');
  return point;
}

}  // namespace lockstep::test
