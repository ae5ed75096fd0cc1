// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/save_round.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

using Next = SaveRound::Next;

// Three ranks; the first leads.
class Ranks : public ::testing::Test {
 protected:
  Ranks() {
    for (SaveRound& rank : ranks_) rank.begin();
  }

  // What all hear, which must be the same.
  Next exchange() {
    SaveTidings all;
    for (const SaveRound& rank : ranks_) all += rank.tidings();
    const Next next = ranks_[0].hear(all);
    EXPECT_EQ(ranks_[1].hear(all), next);
    EXPECT_EQ(ranks_[2].hear(all), next);
    return next;
  }

  std::vector<SaveRound> ranks_ = std::vector(3, SaveRound(3));
};

TEST_F(Ranks, CommitWhenAllHaveWritten) {
  EXPECT_EQ(exchange(), Next::wait);
  ranks_[0].settle(true);
  ranks_[2].settle(true);
  EXPECT_EQ(exchange(), Next::wait) << "one still writes";
  ranks_[1].settle(true);
  EXPECT_EQ(exchange(), Next::commit);
  EXPECT_EQ(exchange(), Next::wait) << "the leader commits";
  ranks_[0].settle(true);
  EXPECT_EQ(exchange(), Next::good);
  EXPECT_TRUE(ranks_[1].is_idle());
}

TEST_F(Ranks, OneThatFailsEndsItWhenAllAreDone) {
  ranks_[1].settle(false);
  ranks_[0].settle(true);
  EXPECT_EQ(exchange(), Next::wait) << "whoever writes must not be in the next one";
  ranks_[2].settle(true);
  EXPECT_EQ(exchange(), Next::bad);
  EXPECT_TRUE(ranks_[0].is_idle());
}

TEST_F(Ranks, TheLeaderMayRefuse) {
  for (SaveRound& rank : ranks_) rank.settle(true);
  EXPECT_EQ(exchange(), Next::commit);
  ranks_[0].settle(false);
  EXPECT_EQ(exchange(), Next::bad);
  for (SaveRound& rank : ranks_) rank.begin();
  EXPECT_EQ(ranks_[0].tidings(), SaveTidings()) << "nothing is left of the one before";
}

}  // namespace
}  // namespace lockstep::checkpoint
