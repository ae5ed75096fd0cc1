// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::data {

// Unicode's normal form C of a valid UTF-8 text.
std::string compose(std::string_view text);

}  // namespace lockstep::data
