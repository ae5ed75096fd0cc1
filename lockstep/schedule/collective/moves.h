// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: the vocabulary in which generators write rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// A range of the caller's first buffer.
constexpr Slice data(Range range) {
  return {.buffer = 0, .range = range};
}

Source local(Slice slice, std::uint8_t merges = 0);
Source message(Rank from, std::uint8_t merges = 0);

Move send(Slice from, std::vector<Rank> to);
Move receive(Rank from, Slice into, std::vector<Rank> pass_on_to = {});
// `sources` without merges, combined from left to right: ((a + b) + c) + ...
Move combine_in_order(std::vector<Source> sources, Slice into);

// Appends the move unless it would do nothing: no elements, or neither a destination nor a receiver.
void add(Round& round, Move move);
// Appends the round unless it is empty.
void add(Program& program, Round round);

// Every rank of the world but those two, in order.
std::vector<Rank> all_but(int world, Rank rank, Rank other = kLocal);

}  // namespace lockstep::schedule
