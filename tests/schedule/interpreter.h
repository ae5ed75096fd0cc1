// SPDX-License-Identifier: Apache-2.0
//
// Runs the programs of all ranks, element by element, in a random order of events: the twin that the checker
// is compared with. It shares no code with schedule/check: messages are read from the sender's memory at the
// moment they are taken, as a transport without copies does, so a hazard shows as a wrong result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule::testing {

// What went wrong in this run, if anything: a rank that never ends, or a result that is not the contract's.
// The programs have passed check().
std::optional<std::string> run_once(const CollectiveSpec& spec, std::span<const Program> programs,
                                    std::uint64_t seed);

}  // namespace lockstep::schedule::testing
