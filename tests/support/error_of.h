// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::test {

// The message of the error of this kind that the action ends with; "no such error" when it ends without one.
template <typename Expected>
std::string error_of(auto&& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  }
  return "no such error";
}

}  // namespace lockstep::test
