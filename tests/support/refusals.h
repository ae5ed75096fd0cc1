// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "lockstep/base/deadline.h"

namespace lockstep::test {

// The action provokes many refusals, whose log lines hold `text`: one line is written, and one more for every
// second that it takes.
inline void expect_few_refusals_logged(std::string_view text, const std::function<void()>& action) {
  const Clock::time_point begin = Clock::now();
  testing::internal::CaptureStderr();
  action();
  const std::string log = testing::internal::GetCapturedStderr();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(Clock::now() - begin).count();
  std::int64_t lines = 0;
  for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++lines;
  EXPECT_GE(lines, 1) << log;
  EXPECT_LE(lines, 1 + seconds) << log;
  EXPECT_NE(log.find("(0 more since the last such line)"), std::string::npos) << log;
}

}  // namespace lockstep::test
