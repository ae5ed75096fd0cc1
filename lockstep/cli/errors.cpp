// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/errors.h"

#include <cstring>

#include <fmt/format.h>

namespace lockstep::cli {

Interrupted::Interrupted(int number, const std::string& what_remains)
    : Error(fmt::format("interrupted by SIG{}{}{}", ::sigabbrev_np(number), what_remains.empty() ? "" : ": ",
                        what_remains)),
      number_(number) {}

}  // namespace lockstep::cli
