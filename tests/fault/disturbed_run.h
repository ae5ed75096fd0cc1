// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/elastic_program.h"

namespace lockstep::testing {

// The launcher comes by there, and no worker.
inline bool is_of_the_coordinator(const std::string& point) {
  return point == "elastic.generation.recorded" || point == "elastic.decision.made";
}

// Short runs in which a failpoint acts once.
class DisturbedRun : public ElasticProgram {
 protected:
  static constexpr int kSteps = 6;
  DisturbedRun() : ElasticProgram(kSteps) {}

  Flags flags_of(const std::string& run, Flags more) const {
    more.insert(more.end(), {"--checkpoint.interval", "2"});
    return ElasticProgram::flags_of(run, more);
  }

  // The file that the failpoint makes when it acts.
  std::string reached(const std::string& run) const { return folder_.path(run + ".reached"); }

  void expect_nothing_left(const std::string& run) const {
    EXPECT_TRUE(std::filesystem::exists(reached(run))) << "nobody came by the failpoint";
    EXPECT_EQ(run_shell("pgrep -a -f '[l]ockstep.* train .*" + folder_.path(run) + " '").output, "");
    for (const std::string& name : test::shared_memory_names()) {
      EXPECT_FALSE(name.starts_with("lockstep")) << name << " was left";
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.path(run) + "/lock"));
  }

  // What every run must end with, whatever happened to it.
  void expect_undisturbed(const std::string& run, const Finished& finished) {
    expect_whole(run, finished);
    expect_nothing_left(run);
    for (const std::string& name : test::names_in(folder_.path(run) + "/checkpoints")) {
      EXPECT_EQ(name.find("partial"), std::string::npos) << name << " was left";
    }
  }
};

}  // namespace lockstep::testing
