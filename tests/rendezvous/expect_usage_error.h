// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::testing {

// The message of the UsageError that `action` throws; fails the test when it throws none.
template <typename Action>
std::string usage_error_of(Action&& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no UsageError";
  return {};
}

}  // namespace lockstep::testing
