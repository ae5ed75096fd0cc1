// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The least number of letters to insert, delete, replace or swap with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that was probably meant; empty when none is close.
std::string closest(std::string_view typed, std::span<const std::string> candidates);

// The end of a message about a name that is not among the known ones: "did you mean 'ring'?", or "expected
// one of ring, tree" when none is close.
std::string expected_name(std::string_view typed, std::span<const std::string> known);

// A name from outside as it may appear in a message: unprintable letters as '?', and cut when it is long.
std::string printable_name(std::string_view typed);

// UsageError "unknown algorithm 'rnig': " with printable_name() and expected_name().
[[noreturn]] void refuse_name(std::string_view kind, std::string_view typed,
                              std::span<const std::string> known);

}  // namespace lockstep
