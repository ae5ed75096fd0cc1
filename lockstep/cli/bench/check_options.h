// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/cli/bench/options.h"

namespace lockstep::cli {

// Options that are right each by itself: UsageError, one sentence, for what they do not allow together. Pure.
void check_together(const BenchOptions& options);

}  // namespace lockstep::cli
