// SPDX-License-Identifier: Apache-2.0
//
// Ways to break the programs of a collective on purpose.
#pragma once

#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule::testing {

using Random = std::mt19937_64;

struct Mutation {
  std::string_view name;
  // Changes one thing at a random place; false if the chosen place has no such thing to change.
  bool (*apply)(std::vector<Program>& programs, Random& random);
};

std::span<const Mutation> all_mutations();

// One of them: a message and the move that takes it come once more, each in a round of its own. Often the
// programs still do their job, with bytes that nobody needs.
bool send_message_twice(std::vector<Program>& programs, Random& random);

}  // namespace lockstep::schedule::testing
