// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/runs.h"

#include <cstddef>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace lockstep {
namespace {

Runs any_runs() {
  const auto length = *rc::gen::inRange<std::size_t>(0, 9);
  return {.first = *rc::gen::inRange<std::size_t>(0, 30),
          .length = length,
          .distance = length + *rc::gen::inRange<std::size_t>(0, 6),
          .count = *rc::gen::inRange<std::size_t>(0, 12)};
}

// Element of the tensor by number among those of the runs, in the plainest way.
std::vector<std::size_t> elements_of(const Runs& runs) {
  std::vector<std::size_t> elements;
  for (std::size_t run = 0; run < runs.count; ++run) {
    for (std::size_t i = 0; i < runs.length; ++i) elements.push_back(runs.first + run * runs.distance + i);
  }
  return elements;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  // number and element

auto append_to(Pairs& pairs) {
  return [&pairs](std::size_t number, std::size_t element, std::size_t count) {
    RC_ASSERT(count > 0U);
    for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(number + i, element + i);
  };
}

RC_GTEST_PROP(Runs, OverlapsAreThoseOfAPlainLoop, ()) {
  const Runs runs = any_runs();
  const auto begin = *rc::gen::inRange<std::size_t>(0, 200);
  const Range wanted = {begin, begin + *rc::gen::inRange<std::size_t>(0, 100)};
  const std::vector<std::size_t> elements = elements_of(runs);
  RC_ASSERT(elements.size() == runs.size());
  Pairs expected;
  for (std::size_t number = 0; number < elements.size(); ++number) {
    if (wanted.begin <= elements[number] && elements[number] < wanted.end) {
      expected.emplace_back(number, elements[number]);
    }
  }
  Pairs found;
  each_overlap(runs, wanted, append_to(found));
  RC_ASSERT(found == expected);
}

RC_GTEST_PROP(Runs, NumberedElementsAreThoseOfAPlainLoop, ()) {
  const Runs runs = any_runs();
  const std::vector<std::size_t> elements = elements_of(runs);
  const auto begin = *rc::gen::inRange<std::size_t>(0, elements.size() + 1);
  const Range numbers = {begin, *rc::gen::inRange<std::size_t>(begin, elements.size() + 1)};
  Pairs expected;
  for (std::size_t number = numbers.begin; number < numbers.end; ++number) {
    expected.emplace_back(number, elements[number]);
  }
  Pairs found;
  each_numbered(runs, numbers, append_to(found));
  RC_ASSERT(found == expected);
}

TEST(Runs, TheDistanceOfOneRunIsOfNoConcern) {
  Pairs found;
  each_overlap({.first = 5, .length = 4, .distance = 0, .count = 1}, {7, 100}, append_to(found));
  EXPECT_EQ(found, (Pairs{{2, 7}, {3, 8}}));
}

}  // namespace
}  // namespace lockstep
