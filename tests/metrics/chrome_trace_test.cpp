// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/chrome_trace.h"

#include <functional>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/files.h"

namespace lockstep::metrics {
namespace {

using nlohmann::json;

class ChromeTraceTest : public ::testing::Test {
 protected:
  // All that is in the file when the trace is gone.
  json written(const TraceProcess& process, std::uint64_t most_events,
               const std::function<void(ChromeTrace&)>& add) {
    {
      ChromeTrace trace(file(), process, most_events);
      add(trace);
    }
    return json::parse(text());
  }

  std::string file() const { return scratch_.path("trace/rank_0.json"); }
  std::string text() const { return test::read_file(file()); }

 private:
  test::TemporaryFolder scratch_;
};

TEST_F(ChromeTraceTest, WritesWhatViewersRead) {
  const json events = written({.number = 3, .name = "rank 3"}, 10, [](ChromeTrace& trace) {
    trace.add({"forward \"0\"", "compute", 1.5, 20.25, 1});
    trace.add(
        {.name = "pass", .category = "compute", .begin_us = 30, .duration_us = 1, .details = {{"step", 7}}});
  });
  EXPECT_EQ(events, json::parse(R"([
    {"name":"process_name","ph":"M","pid":3,"args":{"name":"rank 3"}},
    {"name":"process_sort_index","ph":"M","pid":3,"args":{"sort_index":3}},
    {"name":"forward \"0\"","cat":"compute","ph":"X","ts":1.5,"dur":20.25,"pid":3,"tid":4},
    {"name":"pass","cat":"compute","ph":"X","ts":30.0,"dur":1.0,"pid":3,"tid":3,"args":{"step":7}}])"));
}

TEST_F(ChromeTraceTest, NamesProcessAndThreads) {
  const json events = written({.number = 2, .name = "stage 1", .label = "far away", .threads = {"a", "b"}},
                              10, [](ChromeTrace&) {});
  EXPECT_EQ(events, json::parse(R"([
    {"name":"process_name","ph":"M","pid":2,"args":{"name":"stage 1"}},
    {"name":"process_sort_index","ph":"M","pid":2,"args":{"sort_index":2}},
    {"name":"process_labels","ph":"M","pid":2,"args":{"labels":"far away"}},
    {"name":"thread_name","ph":"M","pid":2,"tid":2,"args":{"name":"a"}},
    {"name":"thread_sort_index","ph":"M","pid":2,"tid":2,"args":{"sort_index":0}},
    {"name":"thread_name","ph":"M","pid":2,"tid":3,"args":{"name":"b"}},
    {"name":"thread_sort_index","ph":"M","pid":2,"tid":3,"args":{"sort_index":1}}])"));
}

TEST_F(ChromeTraceTest, KeepsTheFirstEventsAndSaysThatThereWereMore) {
  const json events = written({.name = "rank 0"}, 2, [](ChromeTrace& trace) {
    for (int i = 0; i < 5; ++i) trace.add({"step", "train", 1.0 * i, 1.0, 0});
  });
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[3].at("ts"), 1.0);
  EXPECT_EQ(events[4].at("ph"), "i");
  EXPECT_EQ(events[4].at("ts"), 2.0);
  EXPECT_EQ(events[4].at("name"), "more than 2 events: the rest is left out");
}

TEST_F(ChromeTraceTest, WritesMoreThanItKeepsInMemory) {
  const json events = written({.name = "rank 0"}, 20'000, [](ChromeTrace& trace) {
    for (int i = 0; i < 20'000; ++i) trace.add({"a name that takes some room", "compute", 1.0 * i, 1.0, 0});
  });
  EXPECT_EQ(events.size(), 20'002U);
}

TEST_F(ChromeTraceTest, WhatWasFlushedIsThereBeforeTheEnd) {
  ChromeTrace trace(file(), {.name = "rank 0"}, 10);
  trace.add({"first", "compute", 1.0, 1.0, 0});
  trace.flush();
  trace.add({"second", "compute", 2.0, 1.0, 0});
  const json events = json::parse(text() + "]");
  EXPECT_EQ(events.size(), 3U);
  EXPECT_EQ(events.back().at("name"), "first");
}

}  // namespace
}  // namespace lockstep::metrics
