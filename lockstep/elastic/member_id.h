// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/elastic/message.h"

namespace lockstep::elastic {

// Random; never 0.
MemberId draw_member_id();

}  // namespace lockstep::elastic
