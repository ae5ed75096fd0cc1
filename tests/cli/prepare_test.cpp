// SPDX-License-Identifier: Apache-2.0
//
// `lockstep prepare -`: text that comes through a pipe, and can be read only once.
#include "lockstep/data/prepare/prepare.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/corpus.h"

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PreparedPipe : public ::testing::Test {
 protected:
  // `command` writes the text.
  Finished prepare(const std::string& command, const std::string& flags = "") const {
    return run_shell(command + " | \"$LOCKSTEP\" prepare - --tokenizer bytes --output '" + prefix_ + "' " +
                     flags);
  }
  std::string tokens() const {
    const auto corpus = data::open_corpus(prefix_, {.vocab_size = 257});
    std::vector<data::Token> found(corpus->size());
    corpus->copy(0, found);
    return {found.begin(), found.end()};
  }

  TemporaryFolder folder_;
  std::string prefix_ = folder_.path("out");
};

TEST_F(PreparedPipe, IsACorpus) {
  const Finished finished = prepare("printf 'In the beginning'");
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("1 document, 16 tokens"));
  EXPECT_EQ(tokens(), "In the beginning");
}

TEST_F(PreparedPipe, IsGzipOrJson) {
  EXPECT_EQ(prepare(R"(printf '{"text": "one"}\n{"text": "two"}\n' | gzip)", "--format jsonl").exit_code, 0);
  EXPECT_EQ(tokens(), "onetwo");
}

TEST_F(PreparedPipe, WhatIsEmptyIsSaid) {
  const Finished finished = prepare("printf one", "--validation 0.00001");
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(
      finished.output,
      HasSubstr(prefix_ + "_validation has no document and cannot be used: choose a larger --validation, or "
                          "cut plain text into more documents with --document-lines\n"));
  EXPECT_THAT(prepare("printf one").output, Not(HasSubstr("no document")));
}

TEST_F(PreparedPipe, BadTextIsNamed) {
  expect_refusal(prepare(R"(printf 'ab\377')"), 65, "standard input at byte 2: the byte 0xFF");
}

TEST_F(PreparedPipe, TrainsNoTokenizer) {
  const Finished finished = run_shell(
      "printf text | \"$LOCKSTEP\" prepare - --train-tokenizer --vocab-size 300 "
      "--output '" +
      prefix_ + "'");
  expect_refusal(finished, 2, "a tokenizer cannot be trained on standard input: put the text into a file");
}

TEST_F(PreparedPipe, ATextThatGivesNoLargeVocabularyIsSaid) {
  const auto of_size = [&](int tokens) {
    return run_shell(
        fmt::format("printf 'abab' > {0}.txt; \"$LOCKSTEP\" prepare {0}.txt --train-tokenizer "
                    "--vocab-size {1} --output {0}",
                    prefix_, tokens));
  };
  EXPECT_THAT(of_size(1000).output, HasSubstr("tokens of the 1000 that --vocab-size asks for\n"));
  EXPECT_THAT(of_size(257).output, Not(HasSubstr("--vocab-size")));
}

// While text comes, and while it is waited for.
TEST_F(PreparedPipe, ASignalEndsItWithOneSentence) {
  const std::string pipe = folder_.path("pipe");
  const auto start = [&](const std::string& writer) {
    return start_shell("rm -f " + pipe + "; mkfifo " + pipe + "; " + writer + " > " + pipe +
                       " 2> /dev/null & exec \"$LOCKSTEP\" prepare - --tokenizer bytes --output '" + prefix_ +
                       "' < " + pipe);
  };
  const std::string sentence =
      ": " + prefix_ + " is not complete; the same command goes on with what was saved\n";

  Program busy = start("yes 'and so on'");
  for (int i = 0; i < 3000 && !std::filesystem::exists(prefix_ + ".progress"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(busy.pid(), SIGINT);
  expect_refusal(busy.finish(), 130, "lockstep: interrupted by SIGINT" + sentence);
  EXPECT_TRUE(std::filesystem::exists(prefix_ + ".progress"));
  EXPECT_FALSE(std::filesystem::exists(prefix_ + ".bin"));
  EXPECT_FALSE(std::filesystem::exists(prefix_ + ".idx"));

  std::filesystem::remove(prefix_ + ".progress");
  const auto stop_idle = [&](const std::string& writer, const std::string& condition) {
    Program idle = start("(" + writer + "; exec tail -f /dev/null --pid=$$)");
    wait_until_taken(idle.pid(), SIGTERM);
    run_shell("while ! " + condition + "; do sleep 0.01; done");
    ::kill(idle.pid(), SIGTERM);
    expect_refusal(idle.finish(), 143, "lockstep: interrupted by SIGTERM" + sentence);
    EXPECT_FALSE(std::filesystem::exists(prefix_ + ".lock"));
  };
  // What has come of a text that stalls is kept, and the rest is read when it comes again.
  const std::string text = "seq 1000000";
  stop_idle(text + " | head -c 5000000",
            "[ \"$(stat -c %s '" + prefix_ + ".bin.partial' || echo 0)\" -ge 4000000 ]");
  EXPECT_TRUE(std::filesystem::exists(prefix_ + ".progress"));
  EXPECT_FALSE(std::filesystem::exists(prefix_ + ".idx"));
  const Finished finished = prepare(text);
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("had been done by an interrupted run"));
  EXPECT_TRUE(tokens() == run_shell(text).output);

  stop_idle("true", "true");
  EXPECT_FALSE(std::filesystem::exists(prefix_ + ".progress"));
  EXPECT_EQ(prepare("printf text").exit_code, 0);
  EXPECT_EQ(tokens(), "text");
}

TEST_F(PreparedPipe, GoesOnWithTheSameTextOnly) {
  std::string text;
  for (int i = 0; text.size() < (5U << 20); ++i) text += "line " + std::to_string(i) + "\n";
  const std::string file = folder_.write("text.txt", text);
  data::PrepareOptions how;
  how.inputs = data::list_inputs({file}, "text");
  how.output = prefix_;
  how.bytes_between_saves = 1;
  const auto stop = [&](const data::PrepareProgress&) { throw std::runtime_error("as if by a signal"); };
  EXPECT_THROW(data::prepare_corpus(how, *data::load_tokenizer("bytes"), stop), std::runtime_error);

  expect_refusal(prepare("printf 'other text'"), 2,
                 "standard input is not that of the interrupted run: give the same again, or remove " +
                     prefix_ + ".progress to begin anew");
  const Finished finished = prepare("cat '" + file + "'");
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("had been done by an interrupted run"));
  EXPECT_TRUE(tokens() == text);
}

// As after a crash in the midst of the renames. The text that comes next need not be that of before.
TEST_F(PreparedPipe, BeginsAnewWhenFilesOfTheInterruptedRunAreGone) {
  data::PrepareOptions how;
  how.inputs = data::list_inputs({folder_.write("text.txt", "the same text")}, "text");
  how.output = prefix_;
  folder_.write("out.idx.new/in_the_way", "");
  EXPECT_THROW(data::prepare_corpus(how, *data::load_tokenizer("bytes"), [](const auto&) {}), UsageError);
  std::filesystem::remove_all(folder_.path("out.idx.new"));
  ASSERT_TRUE(std::filesystem::exists(prefix_ + ".progress"));
  std::filesystem::rename(prefix_ + ".bin.partial", prefix_ + ".bin");

  const Finished finished = prepare("printf 'the same text'");
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(tokens(), "the same text");
}

}  // namespace
}  // namespace lockstep::testing
