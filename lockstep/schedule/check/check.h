// SPDX-License-Identifier: Apache-2.0
//
// Proves the programs of all ranks together, without running them: the rules of program.h, matching messages,
// no deadlock with zero buffering, and that every rank ends with what the contract (collective.h) asks,
// element by element, as an expression over the ranks' inputs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// The first thing that is wrong. `round` and `move` are -1 when it is about the final contents.
struct Violation {
  Rank rank = 0;
  int round = -1;
  int move = -1;
  Range range;  // elements concerned
  std::string reason;

  std::string to_string() const;  // "rank 3, round 2, move 0, elements [128, 256): ..."
};

// What the programs cost, counted from the programs themselves.
struct Cost {
  std::vector<std::size_t> elements_sent;      // per rank
  std::vector<std::size_t> elements_combined;  // per rank: additions
  std::vector<std::size_t> scratch_elements;   // per rank
  int depth = 0;  // longest chain of messages in which each must arrive before the next can be offered
};

struct CheckResult {
  std::optional<Violation> violation;
  Cost cost;  // meaningful when there is no violation
};

// `programs` holds one program per rank of the world. For exact algorithms the expression of every reduced
// element must be the canonical tree; for the others every contribution must be in it exactly once and all
// ranks must hold the same expression.
CheckResult check(const CollectiveSpec& spec, std::span<const Program> programs);

}  // namespace lockstep::schedule
