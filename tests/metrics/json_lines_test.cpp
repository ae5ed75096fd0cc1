// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/json_lines.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

#include "tests/support/files.h"

namespace lockstep::metrics {
namespace {

using ::testing::HasSubstr;

TEST(JsonLine, KeepsOrderAndAllBits) {
  const Record record = {12, 1700000000.25, {{"loss", 0.1 + 0.2}, {"grad_norm", 1e-30}}};
  const std::string line = json_line(record);
  EXPECT_TRUE(line.starts_with("{\"step\":12,\"time\":1700000000.25,\"loss\":")) << line;
  EXPECT_EQ(nlohmann::json::parse(line)["loss"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(nlohmann::json::parse(line)["grad_norm"].get<double>(), 1e-30);
}

TEST(JsonLine, WritesNullForWhatIsNotFinite) {
  EXPECT_EQ(json_line({1, 2.5, {{"loss", std::nan("")}, {"norm", INFINITY}}}),
            "{\"step\":1,\"time\":2.5,\"loss\":null,\"norm\":null}\n");
}

TEST(JsonLinesSink, IsReadableAfterEachLineAndAppends) {
  const test::TemporaryFolder scratch;
  const auto file = scratch.path() / "run" / "metrics.jsonl";
  {
    JsonLinesSink sink(file);
    sink.write({1, 0.5, {}});
    EXPECT_EQ(test::read_file(file), "{\"step\":1,\"time\":0.5}\n");
  }
  JsonLinesSink(file).write({2, 0.5, {}});
  EXPECT_EQ(test::read_file(file), "{\"step\":1,\"time\":0.5}\n{\"step\":2,\"time\":0.5}\n");
}

TEST(JsonLinesSink, OnAFullDiskLosesLinesAndNotTheRun) {
  ::testing::internal::CaptureStderr();
  {
    JsonLinesSink sink("/dev/full");
    for (std::int64_t step = 1; step <= 3; ++step) EXPECT_NO_THROW(sink.write({step, 0.5, {}}));
  }
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("cannot write /dev/full: No space left on device"));
  EXPECT_THAT(told, HasSubstr("3 lines or records of /dev/full are missing"));
  EXPECT_EQ(std::ranges::count(told, '\n'), 2);
}

TEST(JsonLinesSink, SaysWhyItCannotBeOpened) {
  EXPECT_THROW(JsonLinesSink("/proc/none/metrics.jsonl"), UsageError);
}

TEST(JsonLinesFile, KnowsWhatWasRecordedOfAStep) {
  const test::TemporaryFolder scratch;
  const std::string file = scratch.write(
      "metrics.jsonl",
      "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":null,\"a/b\":2}\nno record\n{\"step\":3,\"lo");
  EXPECT_TRUE(has_scalar(file, 1, "loss"));
  EXPECT_FALSE(has_scalar(file, 1, "a/b"));
  EXPECT_TRUE(has_scalar(file, 2, "a/b"));
  EXPECT_TRUE(has_scalar(file, 2, "loss"));
  EXPECT_FALSE(has_scalar(file, 3, "loss"));
  EXPECT_FALSE(has_scalar(file + ".none", 1, "loss"));
}

}  // namespace
}  // namespace lockstep::metrics
