// SPDX-License-Identifier: Apache-2.0
//
// Measures several systems against each other: in every turn each runs once, one after the other, so that
// whatever else the machine does meets all of them alike.
#pragma once

#include <string>
#include <vector>

#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/protocol.h"
#include "lockstep/cli/bench/statistics.h"

namespace lockstep::cli {

struct Contestant {
  Crew* crew = nullptr;  // must outlive the measurement
  Case what;
  std::string algorithm;  // as reported: the name of what `auto` stands for
  std::string transport;
};

struct Measurement {
  Contestant contestant;
  Spread time_us;  // of one operation, over turns; a turn counts as long as its slowest rank
  bool correct = false;
};

struct Pace {
  int turns = 7;
  double turn_us = 75'000;  // every system fills its turn with as many operations as fit
};

// All contestants in turns, each checked before the first and after the last one. At most kMaxBenchSlots
// contestants. Errors as Crew::command.
std::vector<Measurement> measure(const std::vector<Contestant>& contestants, const Pace& pace);

}  // namespace lockstep::cli
