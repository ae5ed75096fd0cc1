// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/suggest.h"

#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("launch", "lauch"), 1u);
  EXPECT_EQ(edit_distance("launch", "luanch"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Closest, FindsWhatWasMeantAndNothingElse) {
  const std::vector<std::string> commands = {"bench", "doctor", "keygen", "launch"};
  EXPECT_EQ(closest("lauch", commands), "launch");
  EXPECT_EQ(closest("docter", commands), "doctor");
  EXPECT_EQ(closest("bnech", commands), "bench");
  EXPECT_EQ(closest("train", commands), "");
  EXPECT_EQ(closest("", commands), "");
  EXPECT_EQ(closest(std::string(100'000, 'x'), commands), "");
}

TEST(RefuseName, SaysWhatWasMeantOrWhatThereIs) {
  const std::vector<std::string> known = {"ring", "tree"};
  const auto error_of = [&](const std::string& typed) -> std::string {
    try {
      refuse_name("algorithm", typed, known);
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of("rnig"), "unknown algorithm 'rnig': did you mean 'ring'?");
  EXPECT_EQ(error_of("bus"), "unknown algorithm 'bus': expected one of ring, tree");
  EXPECT_EQ(error_of("a\nb\xff"), "unknown algorithm 'a?b?': expected one of ring, tree");
  EXPECT_EQ(error_of(std::string(100, 'x')),
            "unknown algorithm '" + std::string(64, 'x') + "...': expected one of ring, tree");
}

}  // namespace
}  // namespace lockstep
