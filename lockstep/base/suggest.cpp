// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/suggest.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestName = 64;  // nobody means a name with a longer one

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // rows[i][j]: distance between the first i letters of a and the first j of b.
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

std::string closest(std::string_view typed, std::span<const std::string> candidates) {
  constexpr std::size_t kShortest = 3;  // "-x" is one letter away from every other short flag
  std::string best;
  std::size_t least = std::max<std::size_t>(1, typed.size() / 3) + 1;
  if (typed.size() < kShortest || typed.size() > kLongestName) return best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(typed, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string expected_name(std::string_view typed, std::span<const std::string> known) {
  const std::string meant = closest(typed, known);
  return meant.empty() ? fmt::format("expected one of {}", fmt::join(known, ", "))
                       : fmt::format("did you mean '{}'?", meant);
}

std::string printable_name(std::string_view typed) {
  std::string shown(typed.substr(0, kLongestName));
  for (char& letter : shown) {
    if (letter < 0x20 || letter > 0x7e) letter = '?';
  }
  return typed.size() > kLongestName ? shown + "..." : shown;
}

void refuse_name(std::string_view kind, std::string_view typed, std::span<const std::string> known) {
  throw UsageError(
      fmt::format("unknown {} '{}': {}", kind, printable_name(typed), expected_name(typed, known)));
}

}  // namespace lockstep
