// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_trace.h"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/train/agreement.h"

#include "tests/support/files.h"
#include "tests/support/ranks.h"

namespace lockstep::train {
namespace {

using nlohmann::json;
using schedule::Act;
using ::testing::UnorderedElementsAre;

class StepTraceTest : public ::testing::Test {
 protected:
  // A stage of three, with a block of two micro-batches.
  void trace_step(StepTrace& trace, std::int64_t step, Rank stage) {
    trace.begin_step(step,
                     {.stage = {.placement = {.stages = 3}, .rank = stage, .chunks = {{stage, stage + 1}}},
                      .micro_batches = 2});
    for (const int micro_batch : {0, 1}) {
      const auto began = Clock::now();
      trace.add({.act = Act::forward, .lane = 0, .micro_batch = micro_batch, .block = stage}, began,
                Clock::now());
    }
    trace.end_step();
  }

  json events_of(const std::string& file) const { return json::parse(folder_.read(file)); }

  static Groups stages(const comm::Communicator& world, int count) {
    return make_groups(world, Mesh(world.size(), {.pipeline = count}));
  }

  test::TemporaryFolder folder_;
};

TEST_F(StepTraceTest, RanksOfAllHostsAreInOneFile) {
  test::run_ranks(transport::make_loopback(3), {.hosts = {0, 0, 1}}, [&](const comm::Communicator& world) {
    // As hosts have it that share no disk.
    const auto own =
        folder_.path() / ("host" + std::to_string(world.hosts()[static_cast<std::size_t>(world.rank())]));
    StepTrace trace({.folder = own, .first_step = 5}, stages(world, 3));
    for (const std::int64_t step : {5, 6}) trace_step(trace, step, world.rank());
    EXPECT_EQ(trace.gather(), own / "from_step_5.json");
  });
  EXPECT_THAT(test::names_in(folder_.path() / "host0"), UnorderedElementsAre("from_step_5.json"));
  EXPECT_THAT(test::names_in(folder_.path() / "host1"), UnorderedElementsAre());
  std::vector<std::string> names(3);
  std::vector<int> passes(3);
  int labels = 0;
  for (const json& event : events_of("host0/from_step_5.json")) {
    const auto rank = event.at("pid").get<std::size_t>();
    if (event.at("name") == "process_name") names.at(rank) = event.at("args").at("name");
    if (event.at("name") == "process_labels") ++labels;
    if (event.at("ph") != "X" || event.at("cat") != "pass") continue;
    ++passes.at(rank);
    EXPECT_EQ(event.at("args").at("stage"), rank);
    EXPECT_EQ(event.at("args").at("part"), rank);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"stage 0, rank 0", "stage 1, rank 1", "stage 2, rank 2"}));
  EXPECT_EQ(passes, (std::vector{4, 4, 4}));
  EXPECT_EQ(labels, 1) << "of the rank whose clock is not that of rank 0";
}

TEST_F(StepTraceTest, WithoutAPipelineRanksHaveNoStage) {
  test::run_ranks(2, [&](const comm::Communicator& world) {
    StepTrace trace({.folder = folder_.path()}, stages(world, 1));
    trace.gather();
  });
  std::vector<std::string> names;
  for (const json& event : events_of("from_step_1.json")) {
    if (event.at("name") == "process_name") names.push_back(event.at("args").at("name"));
  }
  EXPECT_THAT(names, UnorderedElementsAre("rank 0", "rank 1"));
}

TEST_F(StepTraceTest, ARunThatBreaksLeavesTheFilesOfItsRanks) {
  test::run_ranks(3, [&](const comm::Communicator& world) {
    StepTrace trace({.folder = folder_.path()}, stages(world, 3));
    trace_step(trace, 1, world.rank());
    trace.begin_step(2, {.stage = {.placement = {}, .chunks = {{0, 3}}}});
    trace.add({.act = Act::clip}, Clock::now(), Clock::now());
  });
  EXPECT_THAT(folder_.names(), UnorderedElementsAre("from_step_1.rank_0.json", "from_step_1.rank_1.json",
                                                    "from_step_1.rank_2.json"));
  for (const std::string& name : folder_.names()) {
    const json events = events_of(name);
    EXPECT_EQ(std::ranges::count_if(events, [](const json& event) { return event.at("ph") == "X"; }),
              2 + 2 + 1)
        << "passes, actions, and one of the step that broke";
  }
}

TEST_F(StepTraceTest, AFileThatCannotBeOpenedIsToldOnAllRanks) {
  folder_.write("trace", "no folder");
  test::run_ranks(2, [&](const comm::Communicator& world) {
    const Groups groups = stages(world, 1);
    const auto open = [&] { const StepTrace trace({.folder = folder_.path() / "trace"}, groups); };
    if (world.rank() == 0) {
      EXPECT_THROW(open(), UsageError);
    } else {
      EXPECT_THROW(open(), ToldElsewhere);
    }
  });
}

// The run has come to its end, and must not fail for this.
TEST_F(StepTraceTest, WhereTheOneFileCannotBeWrittenThoseOfTheRanksStay) {
  std::filesystem::create_directories(folder_.path() / "from_step_1.json" / "in the way");
  test::run_ranks(2, [&](const comm::Communicator& world) {
    StepTrace trace({.folder = folder_.path()}, stages(world, 1));
    EXPECT_EQ(trace.gather(), std::nullopt);
  });
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("from_step_1.json", "from_step_1.rank_0.json", "from_step_1.rank_1.json"));
}

}  // namespace
}  // namespace lockstep::train
