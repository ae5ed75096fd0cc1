// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/history.h"

#include <gtest/gtest.h>

#include "tests/elastic/coordinator_rig.h"

namespace lockstep::elastic::testing {
namespace {

using Events = std::vector<HistoryEvent>;

class HistoryTest : public ::testing::Test {
 protected:
  Events look(const std::string& reason = "") { return watch_.look(rig_.coordinator, reason); }

  void form_and_begin(std::int64_t step) {
    rig_.join_all({1, 2, 3});
    rig_.begin(step);
    look();
  }

  Rig rig_{options_for(3)};
  HistoryWatch watch_;
};

TEST_F(HistoryTest, AGenerationIsFormedBeginsAndTrains) {
  rig_.join_all({1, 2, 3});
  EXPECT_EQ(look(), (Events{{Turn::formed, 1, 3, kNoStep}}));
  rig_.begin(0);
  EXPECT_EQ(look(), (Events{{Turn::begun, 1, 3, 0}}));
  rig_.vote_all(1);
  EXPECT_EQ(look(), (Events{{Turn::trained, 1, 3, 1}}));
  rig_.vote_all(2);
  EXPECT_EQ(look(), Events{}) << "only its first step is told";
}

TEST_F(HistoryTest, ALossTellsWhatWasDecided) {
  form_and_begin(4);
  rig_.vote_all(5);
  look();
  rig_.vote(1, 6);
  look();
  rig_.lose(3);
  EXPECT_EQ(look("killed"), (Events{{Turn::lost, 1, 3, 5, "killed"}}));
  rig_.join(1, "a", {.generation = 1, .held = 5, .voted = 6});
  rig_.join(2, "a", {.generation = 1, .held = 5});
  EXPECT_EQ(look(), (Events{{Turn::formed, 2, 2, 5}}));
  rig_.begin(5);
  EXPECT_EQ(look(), (Events{{Turn::begun, 2, 2, 5}}));
}

TEST_F(HistoryTest, ALossBeforeTheBeginIsOne) {
  rig_.join_all({1, 2, 3});
  look();
  rig_.lose(2);
  EXPECT_EQ(look("killed"), (Events{{Turn::lost, 1, 3, kNoStep, "killed"}}));
}

TEST_F(HistoryTest, ARollbackIsSeenWhereItBegins) {
  form_and_begin(8);
  rig_.lose(1);
  rig_.lose(2);
  rig_.lose(3);
  look();
  rig_.join(4);
  EXPECT_EQ(look(), (Events{{Turn::formed, 2, 1, 8}}));
  rig_.begin(5);
  EXPECT_EQ(look(), (Events{{Turn::begun, 2, 1, 5}}));
}

TEST_F(HistoryTest, OneThatMakesRoomForOthersIsNotLost) {
  form_and_begin(0);
  rig_.lose(3);
  look();
  rig_.join(1, "a", {.generation = 1, .held = 0});
  rig_.join(2, "a", {.generation = 1, .held = 0});
  rig_.begin(0);
  look();
  rig_.join(4);
  rig_.vote_all(1);
  EXPECT_EQ(look(), (Events{{Turn::trained, 2, 2, 1}, {Turn::regrouped, 2, 2, 1}}));
}

TEST_F(HistoryTest, TheEndIsNoLoss) {
  form_and_begin(0);
  rig_.vote_all(1);
  look();
  for (const MemberId member : {1, 2, 3}) rig_.hear(Leave{member});
  EXPECT_EQ(look(), (Events{{Turn::ended, 1, 3, 1}}));
}

TEST(HistoryLine, IsJson) {
  EXPECT_EQ(json_line({Turn::lost, 3, 4, 12, "rank 2 \"died\""}, 1.5),
            "{\"time\":1.5,\"event\":\"lost\",\"generation\":3,\"workers\":4,\"step\":12,"
            "\"reason\":\"rank 2 \\\"died\\\"\"}\n");
}

TEST(HistoryFile, ThatCannotBeWrittenDoesNotEndTheRun) {
  Rig rig(options_for(1));
  History history("/dev/full");
  rig.join(1);
  EXPECT_NO_THROW(history.look(rig.coordinator, ""));
  EXPECT_NO_THROW(History("/proc/no/such/file").look(rig.coordinator, ""));
}

}  // namespace
}  // namespace lockstep::elastic::testing
