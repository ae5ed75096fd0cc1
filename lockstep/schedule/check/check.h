// SPDX-License-Identifier: Apache-2.0
//
// Proves the programs of all ranks together, without running them: the rules of program.h, matching messages,
// no deadlock with zero buffering, that every rank ends with what the contract (collective.h) asks, element
// by element, as an expression over the ranks' inputs, and that they cost what the formulas (cost.h) say.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// The first thing that is wrong. `round` and `move` are -1 when it is about the final contents or the cost.
struct Violation {
  Rank rank = 0;  // -1: about all ranks together
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

// `programs` holds one program per rank of the world. For exact specs the expression of every reduced
// element must be the canonical tree; for the others every contribution must be in it exactly once and all
// ranks must hold the same expression. Every rank must send, and all together add and be as deep, as
// predict_cost() says: programs with redundant messages are refused although they would run.
CheckResult check(const CollectiveSpec& spec, std::span<const Program> programs);

// The same without the formulas: for programs that no generator has made.
CheckResult check_without_formulas(const CollectiveSpec& spec, std::span<const Program> programs);

}  // namespace lockstep::schedule
