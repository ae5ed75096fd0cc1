// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/tensorboard.h"

#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/metrics/crc32c.h"

#include "tests/metrics/file_size_limit.h"
#include "tests/support/files.h"

namespace lockstep::metrics {
namespace {

// A reader of the format that shares nothing with the writer but the checksum, which has tests of its own.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw std::runtime_error("truncated");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::uint64_t fixed(std::size_t count) {
    std::uint64_t value = 0;
    int shift = 0;
    for (const char c : take(count)) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << shift;
      shift += 8;
    }
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint64_t byte = fixed(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view delimited() { return take(varint()); }

 private:
  std::string_view bytes_;
};

struct Event {
  double time_s = 0.0;
  std::int64_t step = 0;
  std::string version;
  std::map<std::string, float> values;
};

void read_value(std::string_view bytes, Event& event) {
  Reader reader(bytes);
  ASSERT_EQ(reader.varint(), 0x0au);
  const std::string tag(reader.delimited());
  ASSERT_EQ(reader.varint(), 0x15u);
  event.values[tag] = std::bit_cast<float>(static_cast<std::uint32_t>(reader.fixed(4)));
  ASSERT_TRUE(reader.at_end());
}

Event read_event(std::string_view bytes) {
  Event event;
  for (Reader reader(bytes); !reader.at_end();) {
    switch (reader.varint()) {
      case 0x09:
        event.time_s = std::bit_cast<double>(reader.fixed(8));
        break;
      case 0x10:
        event.step = static_cast<std::int64_t>(reader.varint());
        break;
      case 0x1a:
        event.version = reader.delimited();
        break;
      case 0x2a:
        for (Reader summary(reader.delimited()); !summary.at_end();) {
          EXPECT_EQ(summary.varint(), 0x0au);
          read_value(summary.delimited(), event);
        }
        break;
      default:
        throw std::runtime_error("unknown field");
    }
  }
  return event;
}

std::vector<Event> read_file(std::string_view bytes) {
  std::vector<Event> events;
  for (Reader reader(bytes); !reader.at_end();) {
    const std::string_view length = reader.take(8);
    EXPECT_EQ(reader.fixed(4), masked_crc32c(length));
    const std::string_view data = reader.take(Reader(length).fixed(8));
    EXPECT_EQ(reader.fixed(4), masked_crc32c(data));
    events.push_back(read_event(data));
  }
  return events;
}

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

  const std::vector<Event> events = read_file(test::read_file(sink.path()));
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
