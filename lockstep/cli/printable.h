// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cli {

// Text from outside (names and contents of files, arguments) for a terminal: what one would act on (control
// characters, line breaks, changes of the writing direction) and what is no UTF-8 as \xNN.
std::string printable(std::string_view text);

}  // namespace lockstep::cli
