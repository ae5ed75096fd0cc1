// SPDX-License-Identifier: Apache-2.0
//
// Corpora, models and checkpoints whose tokenizers are not the same, as users mix them up.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/train_program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using Flags = std::vector<std::string>;

// Beside the corpus of bytes one of words, made from the same text.
class TokenizerOfARun : public TrainProgram {
 protected:
  TokenizerOfARun() : bytes_(folder_.path("corpus")), words_(folder_.path("words")) {
    const Finished prepared = run_program({"prepare", folder_.path("text.txt"), "--train-tokenizer",
                                           "--vocab-size", "300", "--output", words_});
    EXPECT_EQ(prepared.exit_code, 0) << prepared.error_output;
  }

  Finished train_into(const std::string& run, const Flags& more) {
    Flags flags = {"--job.dump_folder", folder_.path(run), "--training.steps", "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return train(flags);
  }
  void expect_trained(const std::string& run, const Flags& more) {
    const Finished finished = train_into(run, more);
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  }

  // As a program leaves it that has read and written it.
  void rewrite_tokenizer_of(const std::string& corpus) const {
    const auto json = nlohmann::json::parse(read_file(corpus + ".tokenizer.json"));
    std::ofstream(corpus + ".tokenizer.json", std::ios::trunc) << json.dump();
  }

  std::string bytes_;
  std::string words_;
};

TEST_F(TokenizerOfARun, CorporaOfTwoTokenizersAreRefused) {
  const std::string mixed = "[\"" + bytes_ + "\", \"" + words_ + "\"]";
  const std::string sentence = words_ + " was made with another tokenizer than that of " + bytes_;
  for (const char* workers : {"1", "2"}) {
    expect_refusal(train_into("mixed", {"--data.train", mixed, "--workers", workers}), 2, sentence);
    expect_refusal(train_into("mixed", {"--data.validation", words_, "--workers", workers}), 2, sentence);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path("mixed")));
  expect_trained("not_read", {"--data.validation", words_, "--validation.freq", "0"});
}

TEST_F(TokenizerOfARun, ValidationThatWasPreparedWithACorpusTellsItsTokenizer) {
  ASSERT_EQ(
      run_program({"prepare", folder_.path("text.txt"), "--tokenizer", words_ + ".tokenizer.json",
                   "--document-lines", "10", "--validation", "0.3", "--output", folder_.path("divided")})
          .exit_code,
      0);
  const std::string part = folder_.path("divided_validation");
  expect_refusal(train_into("divided_run", {"--data.validation", part}), 2,
                 part + " was made with another tokenizer than that of " + bytes_);
}

TEST_F(TokenizerOfARun, ACorpusThatTellsNothingIsTaken) {
  for (const char* name : {".bin", ".idx"})
    std::filesystem::copy(words_ + name, folder_.path("foreign") + name);
  expect_trained("foreign_run", {"--data.validation", folder_.path("foreign")});
}

TEST_F(TokenizerOfARun, TheOneThatIsNamedMustHaveMadeTheCorpora) {
  const std::string other = words_ + ".tokenizer.json";
  expect_refusal(
      train_into("named", {"--data.tokenizer", other}), 2,
      bytes_ + " was made with another tokenizer than that of data.tokenizer: token 257 is missing in " +
          bytes_ + ".tokenizer.json, but '");
  rewrite_tokenizer_of(bytes_);
  expect_trained("named", {"--data.tokenizer", "bytes"});
}

TEST_F(TokenizerOfARun, AModelIsEvaluatedOnTokensOfItsOwn) {
  expect_trained("run", {});
  const std::string model = folder_.path("run") + "/model";
  const auto eval = [&](const std::string& corpus) {
    return run_program({"eval", model, "--data", corpus, "--seq-len", "32", "--sequences", "2"});
  };
  expect_refusal(eval(words_), 2,
                 words_ + " was made with another tokenizer than that of " + model + ": token 257 is '");
  rewrite_tokenizer_of(bytes_);
  EXPECT_EQ(eval(bytes_).exit_code, 0);
  std::filesystem::remove(words_ + ".tokenizer.json");
  EXPECT_EQ(eval(words_).exit_code, 0);
}

TEST_F(TokenizerOfARun, AModelIsTrainedFurtherOnTokensOfItsOwn) {
  expect_trained("run", {});
  const std::string model = folder_.path("run") + "/model";
  const Flags begin = {"--init-from", model, "--data.validation", words_, "--data.train", words_};
  expect_refusal(train_into("further", begin), 2,
                 words_ + " was made with another tokenizer than that of " + model + ": token 257 is '");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("further")));
  rewrite_tokenizer_of(bytes_);
  expect_trained("further", {"--init-from", model});
  // A model whose words are not known.
  std::filesystem::remove(model + "/tokenizer.json");
  expect_trained("unknown", begin);
}

TEST_F(TokenizerOfARun, ACheckpointIsTrainedFurtherOnTokensOfItsOwn) {
  expect_trained("run", {});
  const std::string run = folder_.path("run");
  const std::string step = run + "/checkpoints/step-1";
  const Flags other = {"--data.validation", words_, "--data.train", words_};
  const auto begin = [&](const std::string& path) {
    Flags flags = other;
    flags.insert(flags.end(), {"--init-from", path});
    return train_into("further", flags);
  };
  const std::string sentence =
      words_ + " was made with another tokenizer than that of " + step + ": token 257 is '";
  for (const std::string& path : {run, run + "/checkpoints", step}) expect_refusal(begin(path), 2, sentence);
  // It is still beside the corpus, while that of another run may be in model/.
  std::filesystem::copy(words_ + ".tokenizer.json", run + "/model/tokenizer.json",
                        std::filesystem::copy_options::overwrite_existing);
  expect_refusal(begin(run), 2, sentence);
  expect_trained("further", {"--init-from", run});
  rewrite_tokenizer_of(bytes_);
  expect_trained("unknown", {"--init-from", run, "--data.validation", words_, "--data.train", words_});
}

TEST_F(TokenizerOfARun, TheOneThatIsNamedMustBeThatOfTheModel) {
  expect_trained("run", {});
  for (const char* name : {".bin", ".idx"})
    std::filesystem::copy(bytes_ + name, folder_.path("foreign") + name);
  const std::string model = folder_.path("run") + "/model";
  const std::string named = words_ + ".tokenizer.json";
  const auto flags = [&](const std::string& tokenizer) {
    return Flags{"--init-from",       model,
                 "--data.train",      folder_.path("foreign"),
                 "--data.validation", folder_.path("foreign"),
                 "--data.tokenizer",  tokenizer};
  };
  expect_refusal(train_into("further", flags(named)), 2,
                 "data.tokenizer is another tokenizer than that of " + model +
                     ", which the run begins with: token 257 is '");
  expect_trained("further", flags("bytes"));
}

TEST_F(TokenizerOfARun, AModelOfPiecesIsTrainedFurtherOnPiecesOfItsOwn) {
  expect_trained("run", {});
  const std::string model = folder_.path("run") + "/model";
  std::filesystem::remove(model + "/tokenizer.json");
  std::filesystem::remove(bytes_ + ".tokenizer.json");
  folder_.write("run/model/tokenizer.model", "pieces");
  folder_.write("corpus.tokenizer.model", "other pieces");
  expect_refusal(train_into("further", {"--init-from", model}), 2,
                 bytes_ + " was made with another tokenizer than that of " + model + ": " + bytes_ +
                     ".tokenizer.model and " + model + "/tokenizer.model are different files");
  folder_.write("corpus.tokenizer.model", "pieces");
  expect_trained("further", {"--init-from", model});
}

TEST_F(TokenizerOfARun, ARunGoesOnWithTheTokensItWasBegunWith) {
  const Flags begin = {"--checkpoint.interval", "1", "--validation.freq", "0"};
  const auto go_on = [&](const Flags& more) {
    Flags flags = begin;
    flags.insert(flags.end(), {"--resume", "auto", "--training.steps", "2"});
    flags.insert(flags.end(), more.begin(), more.end());
    return train_into("run", flags);
  };
  // Expects that it was not allowed; gives the sentence.
  const auto refusal = [&](const Flags& more) {
    const Finished finished = go_on(more);
    EXPECT_EQ(finished.exit_code, 2) << finished.error_output;
    EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
    return finished.error_output;
  };
  expect_trained("run", begin);
  EXPECT_THAT(refusal({"--data.train", words_}), HasSubstr("data.train has other samples than "));
  EXPECT_THAT(refusal({"--data.train", words_, "--data.tokenizer", "bytes"}),
              HasSubstr("data.train has other samples than "));
  // The same tokens, but nobody could read them.
  const std::string file = bytes_ + ".tokenizer.json";
  const std::string own = read_file(file);
  std::filesystem::copy(words_ + ".tokenizer.json", file, std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(refusal({}), ContainsRegex("checkpoints/step-1 was trained with a tokenizer of digest "
                                         "[0-9a-f]{32}, but this run has one of [0-9a-f]{32}: put that"));
  std::filesystem::remove(file);
  EXPECT_THAT(refusal({}), HasSubstr(", but this run has none: put that file back beside the corpus"));
  std::ofstream(file, std::ios::trunc) << own;
  EXPECT_EQ(go_on({}).exit_code, 0);
}

// As an older version has let it begin.
TEST_F(TokenizerOfARun, ARunOfTwoTokenizersGoesOn) {
  const std::string file = words_ + ".tokenizer.json";
  const std::string mixed = "[\"" + bytes_ + "\", \"" + words_ + "\"]";
  const Flags flags = {"--data.train", mixed, "--checkpoint.interval", "1"};
  std::filesystem::rename(file, folder_.path("away"));
  expect_trained("run", flags);
  std::filesystem::rename(folder_.path("away"), file);
  for (const auto& [run, from] : {std::pair{"run", std::string("auto")}, {"other", folder_.path("run")}}) {
    Flags more = flags;
    more.insert(more.end(), {"--resume", from, "--training.steps", "2"});
    expect_trained(run, more);
  }
}

TEST_F(TokenizerOfARun, ExportingWithAnotherOneIsWarnedAbout) {
  expect_trained("run", {"--checkpoint.interval", "1"});
  const std::string model = folder_.path("exported");
  const auto exported = [&](const std::string& tokenizer) {
    const Finished finished =
        run_program({"checkpoint", "export", folder_.path("run"), "--hf", model, "--tokenizer", tokenizer});
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    return finished.error_output;
  };
  EXPECT_EQ(exported("bytes"), "");
  EXPECT_EQ(exported(bytes_ + ".tokenizer.json"), "");
  const std::string other = words_ + ".tokenizer.json";
  EXPECT_THAT(exported(other),
              ContainsRegex("step-1 was trained with a tokenizer of digest [0-9a-f]{32}, but " + other +
                            " has [0-9a-f]{32}: unless both have the same words"));
  EXPECT_EQ(read_file(model + "/tokenizer.json"), read_file(other)) << "it was asked for";
}

}  // namespace
}  // namespace lockstep::testing
