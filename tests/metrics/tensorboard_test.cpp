// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/tensorboard.h"

#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/metrics/event_file.h"
#include "tests/metrics/file_size_limit.h"
#include "tests/support/files.h"

namespace lockstep::metrics {
namespace {

using test::Event;
using test::read_event;
using test::read_events;

TEST(TensorBoard, EncodesAsProtobufDoes) {
  // Event{wall_time: 1.0, step: 300, summary{value{tag: "a", simple_value: 1.0}}} by hand.
  const std::string expected(
      "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01"
      "a\x15\x00\x00\x80\x3f",
      24);
  EXPECT_EQ(tensorboard_event({300, 1.0, {{"a", 1.0}}}), expected);
}

TEST(TensorBoardSink, WritesAFileThatReadsBack) {
  const test::TemporaryFolder scratch;
  TensorBoardSink sink(scratch.path() / "tensorboard");
  sink.write({0, 1700000000.5, {}});
  sink.write({1LL << 40, 1700000001.0, {{"loss", 3.25}, {"validation/loss", -INFINITY}}});
  EXPECT_TRUE(sink.path().filename().string().starts_with("events.out.tfevents.")) << sink.path();

  const std::vector<Event> events = read_events(test::read_file(sink.path()));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].time_s, 1.6e9);
  EXPECT_EQ(events[1].time_s, 1700000000.5);
  EXPECT_TRUE(events[1].values.empty());
  EXPECT_EQ(events[2].step, 1LL << 40);
  EXPECT_EQ(events[2].values,
            (std::map<std::string, float>{{"loss", 3.25f}, {"validation/loss", -INFINITY}}));
}

TEST(TensorBoardSink, WritesTagsOfAnyLength) {
  const std::string tag(1000, 't');
  const Event event = read_event(tensorboard_event({5, 0.0, {{tag, 2.0}}}));
  EXPECT_EQ(event.values.at(tag), 2.0f);
}

TEST(TensorBoardSink, BeginsWithTheVersionAlsoAfterAFullDisk) {
  const test::TemporaryFolder scratch;
  std::optional<TensorBoardSink> sink;
  {
    const FileSizeLimit limit(20);
    sink.emplace(scratch.path());
    sink->write({1, 0.0, {{"loss", 2.0}}});
  }
  EXPECT_EQ(test::read_file(sink->path()), "");
  const Record record = {2, 0.0, {{"loss", 1.0}}};
  sink->write(record);
  const std::string content = test::read_file(sink->path());
  const std::string last = tensorboard_record(tensorboard_event(record));
  const std::size_t first = tensorboard_record(tensorboard_version_event(0.0)).size();
  EXPECT_EQ(content.size(), first + last.size());
  EXPECT_TRUE(content.ends_with(last));
}

TEST(TensorBoardSink, ItsFilesAndNoOthersAreRemoved) {
  const test::TemporaryFolder scratch;
  const std::filesystem::path file = TensorBoardSink(scratch.path()).path();
  const std::filesystem::path other = scratch.write("notes.txt", "mine");
  remove_tensorboard_files(scratch.path());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(other));
  remove_tensorboard_files(scratch.path() / "nowhere");
}

}  // namespace
}  // namespace lockstep::metrics
