// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace lockstep::cli {

// What the program ends with; docs/errors.md.
inline constexpr int kDone = 0;
inline constexpr int kDiffers = 1;       // what was compared is not equal
inline constexpr int kBadUsage = 2;      // flag, environment, configuration or setup
inline constexpr int kBadData = 65;      // a corrupt or hostile file or message
inline constexpr int kInternal = 70;     // a bug of ours
inline constexpr int kInUse = 73;        // another process writes the same folder or files
inline constexpr int kOutputLost = 74;   // standard output could not be written
inline constexpr int kInterrupted = 75;  // communication failed: may be tried or resumed
inline constexpr int kSignalBase = 128;  // ended by signal n: kSignalBase + n

struct Verdict {
  int code = kInternal;
  std::string sentence;  // one line, for standard error; empty: all has been said
};

// The one place where errors become exit codes.
Verdict verdict_on(const std::exception_ptr& error);

}  // namespace lockstep::cli
