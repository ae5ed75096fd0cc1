// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/elastic/message.h"

namespace lockstep::elastic {

// Of a member or a run: random, never 0.
std::uint64_t draw_id();

}  // namespace lockstep::elastic
