// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/processes.h"

namespace lockstep::test {

// The survivors name a rank that has stopped at their deadline, and end.
inline void expect_named_as_silent(RankProcesses& ranks, Rank stopped,
                                   std::initializer_list<Rank> survivors) {
  for (const Rank rank : survivors) {
    EXPECT_THAT(ranks.next_line(rank),
                ::testing::AnyOf(::testing::HasSubstr(fmt::format("rank {} silent for", stopped)),
                                 ::testing::HasSubstr(fmt::format("rank {} has not arrived", stopped))))
        << "rank " << rank;
    ranks.wait(rank);
  }
}

}  // namespace lockstep::test
