// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/errors.h"

#include <cstring>

#include <fmt/format.h>

namespace lockstep::cli {

Interrupted::Interrupted(int number)
    : Error(fmt::format("interrupted by SIG{}", ::sigabbrev_np(number))), number_(number) {}

}  // namespace lockstep::cli
