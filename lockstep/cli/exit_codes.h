// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace lockstep::cli {

// What the program ends with; docs/errors.md.
enum ExitCode : int {
  kDone = 0,
  kBadUsage = 2,      // flag, environment, configuration or setup
  kBadData = 65,      // a corrupt or hostile file or message
  kInternal = 70,     // a bug of ours
  kInUse = 73,        // the run directory is in use by another run
  kInterrupted = 75,  // communication failed: may be tried or resumed
};

struct Verdict {
  ExitCode code = kInternal;
  std::string sentence;  // one line, for standard error
};

// The one place where errors become exit codes.
Verdict verdict_on(const std::exception_ptr& error);

}  // namespace lockstep::cli
