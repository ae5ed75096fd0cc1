// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/output.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/cli/errors.h"

namespace lockstep::cli {

void print(std::ostream& out, std::string_view text) {
  errno = 0;
  out << text << std::flush;
  if (out) return;
  throw OutputError(fmt::format("cannot write standard output: {}", std::strerror(errno)));
}

}  // namespace lockstep::cli
