// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lockstep/schedule/check/network.h"
#include "lockstep/schedule/check/progress.h"

namespace lockstep::schedule {

// No rank can end before it has heard, through a chain of messages, that every rank has entered. That a
// message of its own was taken counts for nothing: a transport may take it while the receiver is still away.
std::optional<Violation> check_barrier(const Network& network, const Progress& progress);

}  // namespace lockstep::schedule
