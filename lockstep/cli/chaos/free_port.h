// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::cli {

// A loopback port that nobody listened on a moment ago.
std::uint16_t free_port();

}  // namespace lockstep::cli
