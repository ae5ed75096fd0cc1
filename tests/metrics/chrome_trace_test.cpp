// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/chrome_trace.h"

#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/files.h"

namespace lockstep::metrics {
namespace {

nlohmann::json written(const ChromeTrace& trace) {
  const test::TemporaryFolder scratch;
  const auto file = scratch.path() / "trace" / "rank0.json";
  trace.write(file);
  return nlohmann::json::parse(test::read_file(file));
}

TEST(ChromeTrace, WritesWhatViewersRead) {
  ChromeTrace trace(3, 10);
  trace.add({"forward \"0\"", "compute", 1.5, 20.25, 1});
  const auto json = written(trace);
  const auto& events = json["traceEvents"];
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0],
            nlohmann::json::parse(R"({"name":"process_name","ph":"M","pid":3,"args":{"name":"rank 3"}})"));
  EXPECT_EQ(events[1],
            nlohmann::json::parse(
                R"({"name":"forward \"0\"","cat":"compute","ph":"X","ts":1.5,"dur":20.25,"pid":3,"tid":1})"));
}

TEST(ChromeTrace, KeepsABoundedNumberAndCountsTheRest) {
  ChromeTrace trace(0, 2);
  for (int i = 0; i < 5; ++i) trace.add({"step", "train", 1.0 * i, 1.0, 0});
  EXPECT_EQ(trace.dropped(), 3u);
  const auto json = written(trace);
  EXPECT_EQ(json["traceEvents"].size(), 3u);
  EXPECT_EQ(json["otherData"]["dropped_events"], 3);
}

TEST(ChromeTrace, WritesMoreThanOneChunk) {
  ChromeTrace trace(0, 20'000);
  for (int i = 0; i < 20'000; ++i) trace.add({"a name that takes some room", "compute", 1.0 * i, 1.0, 0});
  EXPECT_EQ(written(trace)["traceEvents"].size(), 20'001u);
}

TEST(ChromeTrace, TakesEventsFromManyThreads) {
  ChromeTrace trace(0, 1000);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&trace, thread] {
        for (int i = 0; i < 300; ++i) trace.add({"x", "y", 0.0, 0.0, thread});
      });
    }
  }
  EXPECT_EQ(trace.dropped(), 200u);
}

}  // namespace
}  // namespace lockstep::metrics
