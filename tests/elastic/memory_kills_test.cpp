// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/memory_kills.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using Whose = MemoryKills::Whose;

// The files of a system, with other numbers.
class MemoryKillsTest : public ::testing::Test {
 protected:
  MemoryKillsTest() {
    std::filesystem::create_directories(folder_.path() / "self");
    std::filesystem::create_directories(folder_.path() / "ours");
    folder_.write("self/cgroup", "1:cpu:/elsewhere\n0::/ours\n");
    set(7, 2);
  }

  void set(int machine, int group) const {
    folder_.write("vmstat", "pgfault 12345\noom_kill " + std::to_string(machine) + "\n");
    folder_.write("ours/memory.events", "oom 9\noom_kill " + std::to_string(group) + "\n");
  }

  MemoryKills start() const { return MemoryKills(folder_.path(), folder_.path()); }

  test::TemporaryFolder folder_;
  const Clock::time_point now_ = Clock::now();
};

TEST_F(MemoryKillsTest, WhatWasBeforeDoesNotCount) {
  MemoryKills kills = start();
  EXPECT_EQ(kills.take(now_), Whose::none);
}

TEST_F(MemoryKillsTest, TheGroupTellsMoreThanTheMachine) {
  MemoryKills kills = start();
  set(8, 3);
  EXPECT_EQ(kills.take(now_), Whose::group);
  EXPECT_EQ(kills.take(now_), Whose::none) << "it was one";
  set(9, 3);
  EXPECT_EQ(kills.take(now_), Whose::machine);
  EXPECT_EQ(kills.take(now_), Whose::none);
}

TEST_F(MemoryKillsTest, AGroupThatCannotBeSeenIsNone) {
  folder_.write("self/cgroup", "0::/" + std::string(300, 'x') + "\n");  // longer than a name may be
  MemoryKills kills = start();
  set(8, 3);
  EXPECT_EQ(kills.take(now_), Whose::machine);
}

TEST_F(MemoryKillsTest, OnlyTheLastMomentCounts) {
  MemoryKills kills = start();
  set(9, 3);
  kills.look(now_ + 10s);
  EXPECT_EQ(kills.take(now_ + 11s), Whose::group) << "who was killed then ends now";
  EXPECT_EQ(kills.take(now_ + 1h), Whose::none);
}

TEST_F(MemoryKillsTest, AreLookedAtEachSecond) {
  MemoryKills kills = start();
  kills.look(now_ + 10s);
  EXPECT_EQ(kills.next_look(), now_ + 11s);
  kills.look(now_ + 10500ms);
  EXPECT_EQ(kills.next_look(), now_ + 11s);
}

TEST_F(MemoryKillsTest, OfTheFirstVersionOfControlGroups) {
  std::filesystem::create_directories(folder_.path() / "memory/ours");
  folder_.write("self/cgroup", "5:memory:/ours\n0::/nothing\n");
  folder_.write("memory/ours/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  MemoryKills kills = start();
  folder_.write("memory/ours/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(kills.take(now_), Whose::group);
}

TEST_F(MemoryKillsTest, WithoutAGroupTheMachineIsLookedAt) {
  folder_.write("self/cgroup", "");
  MemoryKills kills = start();
  set(8, 3);
  EXPECT_EQ(kills.take(now_), Whose::machine);
}

}  // namespace
}  // namespace lockstep::elastic
