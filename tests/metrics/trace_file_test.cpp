// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/trace_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::metrics {
namespace {

using nlohmann::json;

class TraceFileTest : public ::testing::Test {
 protected:
  std::string all_of(const std::string& file) { return TraceReader(file).next(1 << 20); }

  test::TemporaryFolder folder_;
};

TEST_F(TraceFileTest, IsAnArrayOfWhatWasAdded) {
  const std::string file = folder_.path("new/folder/a.json");
  {
    TraceFile trace(file);
    trace.add(R"({"a":1})");
    trace.add("");
    trace.add("{\"b\":2},\n{\"c\":3}");
    EXPECT_TRUE(trace.is_whole());
  }
  EXPECT_EQ(json::parse(test::read_file(file)), json::parse(R"([{"a":1},{"b":2},{"c":3}])"));
}

TEST_F(TraceFileTest, WithoutEventsIsAnEmptyArray) {
  const std::string file = folder_.path("a.json");
  { const TraceFile trace(file); }
  EXPECT_EQ(json::parse(test::read_file(file)), json::array());
  EXPECT_EQ(all_of(file), "");
}

TEST_F(TraceFileTest, IsReadInPiecesOfWholeEvents) {
  const std::string file = folder_.path("a.json");
  {
    TraceFile trace(file);
    for (int i = 0; i < 3; ++i) trace.add(json{{"number", i}}.dump());
  }
  TraceReader reader(file);
  EXPECT_EQ(reader.next(1), R"({"number":0})");
  EXPECT_EQ(reader.next(13), "{\"number\":1},\n{\"number\":2}");
  EXPECT_EQ(reader.next(1), "");
}

TEST_F(TraceFileTest, AKilledWriterLeavesItsWholeEvents) {
  const std::string first = R"({"name":"a","args":{"step":1}})";
  const std::string second = R"({"name":"b","args":{"step":2}})";
  EXPECT_EQ(all_of(folder_.write("a.json", "[\n" + first + ",\n" + second)), first + ",\n" + second);
  for (std::size_t left = 0; left < second.size(); ++left) {
    EXPECT_EQ(all_of(folder_.write("a.json", "[\n" + first + ",\n" + second.substr(0, left))), first);
  }
}

TEST_F(TraceFileTest, AFileThatIsNotThereIsRefusedByName) {
  const std::string file = folder_.path("missing.json");
  EXPECT_EQ(test::error_of<UsageError>([&] { TraceReader reader(file); }),
            "cannot read " + file + ": No such file or directory");
}

}  // namespace
}  // namespace lockstep::metrics
