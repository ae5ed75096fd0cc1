// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string_view>

namespace lockstep::cli {

// Writes the text and what is buffered before it. OutputError when any of it is lost: a result that nobody
// can read is no result.
void print(std::ostream& out, std::string_view text);

}  // namespace lockstep::cli
