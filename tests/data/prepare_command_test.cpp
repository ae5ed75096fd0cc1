// SPDX-License-Identifier: Apache-2.0
//
// lockstep prepare as a user calls it: exit codes, what is printed, what is left on the disk.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/cli/run.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/tokenizer/tokenizer.h"

#include "tests/data/tokens.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

struct Outcome {
  int code = -1;
  std::string output, error;
};

Outcome prepare(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "prepare");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = cli::run(arguments);
  outcome.output = ::testing::internal::GetCapturedStdout();
  outcome.error = ::testing::internal::GetCapturedStderr();
  return outcome;
}

std::string verses() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "Ge" + std::to_string(i) + " And the earth was without form, and void.\n";
  return text;
}

TEST(PrepareCommand, TrainsWritesAndReads) {
  TemporaryFolder folder;
  const std::string text = verses();
  folder.write("text.txt", text);
  const std::string prefix = folder.path("data/kjv");
  const Outcome done =
      prepare({folder.path("text.txt"), "--output", prefix, "--train-tokenizer", "--vocab-size", "300",
               "--append-eod", "--document-lines", "4", "--validation", "0.2", "--json"});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.error, "");
  const auto summary = nlohmann::json::parse(done.output);
  EXPECT_EQ(summary["vocab_size"], 300);
  EXPECT_EQ(summary["bytes"], text.size());
  EXPECT_EQ(summary["documents"].get<int>() + summary["validation_documents"].get<int>(), 100);
  EXPECT_GT(summary["validation_documents"], 0);

  const auto tokenizer = load_tokenizer(prefix + ".tokenizer.json");
  const auto corpus = open_corpus(prefix, {.vocab_size = tokenizer->vocab_size()});
  EXPECT_EQ(summary["tokens"], corpus->size());
  EXPECT_THAT(tokenizer->decode(testing::all_tokens(*corpus)), StartsWith("Ge0 And the earth"));
  EXPECT_EQ(testing::all_tokens(*corpus).back(), tokenizer->end_of_document());

  const Outcome again =
      prepare({folder.path("text.txt"), "--output", folder.path("again"), "--tokenizer",
               prefix + ".tokenizer.json", "--append-eod", "--document-lines", "4", "--validation", "0.2"});
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_THAT(again.output, HasSubstr("of a vocabulary of 300"));
  EXPECT_EQ(folder.read("again.bin"), folder.read("data/kjv.bin"));
}

TEST(PrepareCommand, TellsOfValidationThatItLeaves) {
  TemporaryFolder folder;
  const std::string text = folder.write("text.txt", "text"), prefix = folder.path("out");
  const std::string note = prefix + "_validation.bin of before is still there";
  const std::vector<std::string> arguments = {text, "--output", prefix, "--tokenizer", "bytes"};
  EXPECT_THAT(prepare(arguments).output, Not(HasSubstr(note)));
  folder.write("out_validation.bin", "of another program");
  EXPECT_THAT(prepare(arguments).output, HasSubstr(note));
  EXPECT_EQ(folder.read("out_validation.bin"), "of another program");

  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  EXPECT_EQ(nlohmann::json::parse(prepare(as_json).output)["validation_of_before"], true);
}

TEST(PrepareCommand, MistakesAreOneSentenceAndExitCode2) {
  TemporaryFolder folder;
  const std::string text = folder.write("text.txt", "text");
  const std::string out = folder.path("out");
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {text, "--output", out});
    const Outcome outcome = prepare(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1);
    EXPECT_THAT(outcome.error, StartsWith("lockstep: "));
    return outcome.error;
  };
  EXPECT_THAT(refused({}), HasSubstr("give either --tokenizer"));
  EXPECT_THAT(refused({"--tokenizer", "bytes", "--train-tokenizer", "--vocab-size", "300"}),
              HasSubstr("give either"));
  EXPECT_THAT(refused({"--train-tokenizer"}), HasSubstr("--vocab-size"));
  EXPECT_THAT(refused({"--train-tokenizer", "--vocab-size", "300", "--pattern", "gpt3"}),
              HasSubstr("'gpt3'"));
  EXPECT_THAT(refused({"--train-tokenizer", "--vocab-size", "100"}), HasSubstr("a vocabulary of 100"));
  EXPECT_THAT(refused({"--tokenizer", "bytes", "--validation", "1"}), HasSubstr("--validation is 1: "));
  for (const char* flag : {"--validation", "--threads", "--vocab-size", "--train-mib", "--document-lines"}) {
    for (const char* value : {"x", "-1", "1e30"}) {
      EXPECT_THAT(refused({flag, value}),
                  StartsWith("lockstep: " + std::string(flag) + " is '" + value + "': expected a "));
    }
  }
  EXPECT_THAT(
      refused({"--tokenizer", "bytes", "--eod", "<none>"}),
      HasSubstr("--eod names the token that --append-eod puts behind documents: give both, or leave it out"));
  EXPECT_THAT(refused({"--tokenizer", "bytes", "--append-eod", "--eod", "<none>"}), HasSubstr("'<none>'"));
  EXPECT_THAT(refused({"--tokenizer", folder.path("none")}), HasSubstr("none: No such file"));
  EXPECT_THAT(refused({"--tokenizer", "bytes", "--format", "xml"}), HasSubstr("'xml'"));
  EXPECT_THAT(refused({"--tokenizer", "bytes", "--pattern", "gpt2"}), HasSubstr("leave them out"));
  EXPECT_THAT(refused({"--tokenizer", "bytes", "--train-mib", "1"}), HasSubstr("leave them out"));
  EXPECT_THAT(refused({"--tokeniser", "bytes"}), HasSubstr("did you mean '--tokenizer'?"));
  EXPECT_THAT(folder.names(), UnorderedElementsAre("text.txt"));
}

TEST(PrepareCommand, TakesSeveralInputs) {
  TemporaryFolder folder;
  const std::string first = folder.write("first.txt", "one");
  const std::string second = folder.write("second.txt", "two");
  const Outcome outcome =
      prepare({first, second, "--output", folder.path("out"), "--tokenizer", "bytes", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["documents"], 2);
}

TEST(PrepareCommand, WhatCannotBeLookedAtIsSaid) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder.path("loop"));
  const Outcome outcome =
      prepare({folder.path("loop"), "--output", folder.path("out"), "--tokenizer", "bytes"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.error,
            "lockstep: cannot read " + folder.path("loop") + ": Too many levels of symbolic links\n");
  const Outcome missing = prepare({"nothing", "--output", folder.path("out"), "--tokenizer", "bytes"});
  EXPECT_EQ(missing.error, "lockstep: cannot read nothing: there is no such file or folder\n");
}

// "data" for data.bin beside a folder "data", which a run would take for the corpus.
TEST(PrepareCommand, WritesNothingBesideAFolderOfTheSameName) {
  TemporaryFolder folder;
  const std::string text = folder.write("data/text.txt", "one");
  const Outcome outcome = prepare({text, "--output", folder.path("data"), "--tokenizer", "bytes"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("which is a folder: name a prefix for the files, such as " +
                                       folder.path("data/corpus")));
  EXPECT_THAT(folder.names(), UnorderedElementsAre("data"));
}

TEST(PrepareCommand, BadDataIsExitCode65) {
  TemporaryFolder folder;
  const std::string bad = folder.write("bad.txt", "ab\xFF");
  const Outcome outcome = prepare({bad, "--output", folder.path("out"), "--tokenizer", "bytes"});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_THAT(outcome.error, HasSubstr("bad.txt at byte 2: "));
  const Outcome tokenizer =
      prepare({bad, "--output", folder.path("out"), "--tokenizer", folder.write("t.json", "{")});
  EXPECT_EQ(tokenizer.code, 65);
  EXPECT_THAT(tokenizer.error, HasSubstr("t.json: this is not valid JSON: parse error at line 1"));
}

}  // namespace
}  // namespace lockstep::data
