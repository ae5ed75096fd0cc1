// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "lockstep/base/exit_code.h"

namespace lockstep::cli {

// What the program ends with; docs/errors.md.
using exit_code::kBadData;
using exit_code::kBadUsage;
using exit_code::kInternal;
using exit_code::kInterrupted;
using exit_code::kInUse;
inline constexpr int kDone = 0;
inline constexpr int kDiffers = 1;       // what was compared is not equal
inline constexpr int kOutputLost = 74;   // standard output could not be written
inline constexpr int kSignalBase = 128;  // ended by signal n: kSignalBase + n

struct Verdict {
  int code = kInternal;
  std::string sentence;  // one line, for standard error; empty: all has been said
};

// Adds the kinds that only a program meets to exit_code_of().
Verdict verdict_on(const std::exception_ptr& error);

}  // namespace lockstep::cli
