// SPDX-License-Identifier: Apache-2.0
//
// `lockstep trace` on what no run has written; pipeline_test.cpp has the traces of runs.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Trace : public ::testing::Test {
 protected:
  // Shown and put together; nothing is written.
  void expect_refusal(const std::string& file, int exit_code, const std::string& sentence) {
    const std::string output = folder_.path("out/all.json");
    for (const std::vector<std::string>& flags : {std::vector<std::string>{}, {"--output", output}}) {
      std::vector<std::string> command = {"trace", file};
      command.insert(command.end(), flags.begin(), flags.end());
      const Finished finished = run_program(command);
      EXPECT_EQ(finished.exit_code, exit_code) << finished.error_output;
      EXPECT_THAT(finished.error_output, HasSubstr(sentence));
    }
    if (std::filesystem::exists(folder_.path("out"))) {
      EXPECT_THAT(test::names_in(folder_.path("out")), IsEmpty());
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Trace, OfAnotherKindOfFileIsBadData) {
  const std::string file = folder_.write("secret", "0123456789abcdef\n");
  expect_refusal(file, 65, file + " at byte 0 is no trace");
}

TEST_F(Trace, OfOtherJsonIsBadData) {
  for (const char* json : {"{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":2.4}\n", "{\n  \"a\": 1\n}\n",
                           "[1, 2]\n", "[\n1,\n2\n]\n"}) {
    const std::string file = folder_.write("other.json", json);
    expect_refusal(file, 65, file + " at byte 0 is no trace");
  }
  const std::string file = folder_.write("objects.json", "[\n{\"a\":1},\n{\"b\":2}\n]\n");
  expect_refusal(file, 65, file + " is no trace");
}

// As a rank leaves it that was killed soon, or computes nothing.
TEST_F(Trace, WithoutPassesIsNotEnough) {
  for (const char* text : {"", "[", "[\n", "[\n\n]\n", "[\n{\"name\":\"process_na",
                           "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{}}\n]\n"}) {
    const Finished finished = run_program({"trace", folder_.write("rank-0.json", text)});
    EXPECT_EQ(finished.exit_code, 2) << text;
    EXPECT_THAT(finished.error_output, HasSubstr("no step with the passes of all stages"));
  }
}

TEST_F(Trace, WithALineThatIsNoEventIsBadData) {
  const std::string file = folder_.write("broken.json", "[\n{\"a\":1},\n{\"b\":,\n{\"c\":3}\n]\n");
  expect_refusal(file, 65, file + " is no trace");
}

TEST_F(Trace, OfAFolderIsBadUsage) {
  expect_refusal(folder_.path().string(), 2, "it is a folder");
}

TEST_F(Trace, OfNothingIsBadUsage) {
  expect_refusal(folder_.path("missing"), 2, "No such file");
}

}  // namespace
}  // namespace lockstep::testing
