// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/canonical.h"

#include <bit>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

void append_merges(int leaves, std::vector<std::uint8_t>& merges) {
  if (leaves == 1) {
    merges.push_back(0);
    return;
  }
  const int left = canonical_split(leaves);
  append_merges(left, merges);
  append_merges(leaves - left, merges);
  ++merges.back();
}

bool are_siblings(const Subtree& left, const Subtree& right) {
  return left.count == right.count && left.end() == right.first && left.first % (2 * left.count) == 0;
}

}  // namespace

int canonical_split(int leaves) {
  LOCKSTEP_CHECK(leaves >= 2, "a tree of one leaf has no halves");
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(leaves - 1)));
}

std::vector<std::uint8_t> canonical_merges(int leaves) {
  std::vector<std::uint8_t> merges;
  if (leaves > 0) append_merges(leaves, merges);
  return merges;
}

std::vector<std::uint8_t> canonical_merges(std::span<const Subtree> operands) {
  std::vector<std::uint8_t> merges;
  std::vector<Subtree> stack;
  for (const Subtree& operand : operands) {
    stack.push_back(operand);
    merges.push_back(0);
    while (stack.size() >= 2 && are_siblings(stack[stack.size() - 2], stack.back())) {
      stack.pop_back();
      stack.back().count *= 2;
      ++merges.back();
    }
  }
  LOCKSTEP_CHECK(stack.size() <= 1, "the operands do not make up one subtree");
  return merges;
}

}  // namespace lockstep::schedule
