// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "lockstep/comm/communicator.h"

namespace lockstep::train {

// Puts the trace files of all ranks, each on its host, into one on that of rank 0, and removes them. False,
// on all ranks and after a warning, when it cannot be: then they stay. All ranks call it together.
bool gather_trace(const std::filesystem::path& own, const std::filesystem::path& whole,
                  const comm::Communicator& world);

}  // namespace lockstep::train
