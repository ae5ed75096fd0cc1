// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/data/tokenizer/tokenizer.h"

#include "tests/checkpoint/models.h"
#include "tests/checkpoint/tensors.h"
#include "tests/data/tokens.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using testing::gpt_model;
using ::testing::HasSubstr;
using testing::llama_model;
using testing::tensor_of;
using ::testing::UnorderedElementsAre;

class SavedFolder : public ::testing::Test {
 protected:
  std::vector<OutgoingTensor> tensors() const {
    return {tensor_of("a", DType::uint8, {4}, "aaaa"), tensor_of("b", DType::uint8, {2}, "bb"),
            tensor_of("c", DType::uint8, {9}, "ccccccccc"), tensor_of("d", DType::uint8, {1}, "d")};
  }
  void save(std::uint64_t max_shard_bytes, const FolderTokenizer& tokenizer = {}) const {
    const FolderConfig config = {
        .model = llama_model(), .dtype = DType::fp32, .special = tokenizer.special_tokens()};
    save_folder(path_, config, tensors(), tokenizer, max_shard_bytes);
  }
  std::string content(const char* name) const {
    const ModelFolder folder(path_);
    const auto [file, tensor] = folder.find(name);
    return tensor == nullptr ? "none" : testing::text_of(file->bytes_of(*tensor));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path("");
};

TEST_F(SavedFolder, ASmallModelIsOneFile) {
  save(100, {.tokenizer = data::load_tokenizer("bytes")});
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("config.json", "generation_config.json", "model.safetensors",
                                   "tokenizer.json", "tokenizer_config.json"));
  EXPECT_EQ(SafetensorsFile(folder_.path("model.safetensors")).header().metadata.at("format"), "pt");
  EXPECT_EQ(content("b"), "bb");
  EXPECT_EQ(content("x"), "none");
  EXPECT_EQ(data::load_tokenizer(path_)->vocab_size(), 257U);
  const auto settings = nlohmann::json::parse(folder_.read("tokenizer_config.json"));
  EXPECT_EQ(settings["eos_token"], "<|endoftext|>");
  EXPECT_EQ(settings["bos_token"], "<|endoftext|>");
}

class Companions : public SavedFolder {
 protected:
  // As a folder of LLaMA 3 has it, with tokens of bytes.
  void write_theirs() {
    theirs_.write("tokenizer.json", data::load_tokenizer("bytes")->serialized());
    theirs_.write("config.json",
                  R"({"model_type": "qwen2", "bos_token_id": 10, "eos_token_id": [11, 299, 300]})");
    for (const auto& [name, text] : files_) theirs_.write(name, text);
  }
  bool take(FolderTokenizer& into) const { return take_companions(theirs_.path(""), 300, into); }

  TemporaryFolder theirs_;
  std::map<std::string, std::string> files_ = {
      {"tokenizer_config.json",
       R"({"bos_token": {"content": "a"}, "eos_token": "<|endoftext|>", "chat_template": "{{ x }}"})"},
      {"special_tokens_map.json", R"({"bos_token": "a"})"},
      {"generation_config.json", R"({"temperature": 0.6, "eos_token_id": [11, 299]})"},
      {"chat_template.jinja", "{{ y }}"}};
};

TEST_F(Companions, StayAsTheyAre) {
  write_theirs();
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer(theirs_.path(""))};
  ASSERT_TRUE(take(tokenizer));
  for (int round = 0; round < 2; ++round) {
    save(100, tokenizer);
    for (const auto& [name, text] : files_) EXPECT_EQ(folder_.read(name), text) << name;
    EXPECT_EQ(folder_.read("tokenizer.json"), theirs_.read("tokenizer.json"));
    EXPECT_EQ(ModelFolder(path_).config().special,
              (SpecialTokens{.begin_of_text = 10, .ends_of_text = {11, 299}}));
  }
  FolderTokenizer again = {.tokenizer = data::load_tokenizer(path_)};
  ASSERT_TRUE(take_companions(path_, 300, again));
  EXPECT_EQ(again.companions, files_);
  EXPECT_EQ(again.special, tokenizer.special);
}

TEST_F(Companions, OfAnotherTokenizerAreLeft) {
  write_theirs();
  auto other = nlohmann::json::parse(theirs_.read("tokenizer.json"));
  other["added_tokens"].push_back({{"id", 257}, {"content", "<|more|>"}, {"special", true}});
  theirs_.write("tokenizer.json", other.dump());
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_FALSE(take(tokenizer));
  EXPECT_EQ(tokenizer.companions.size(), 0U);
  EXPECT_EQ(tokenizer.special_tokens(), (SpecialTokens{.begin_of_text = 256, .ends_of_text = {256}}));
}

TEST_F(Companions, AreLeftInAFolderThatDoesNotShowItsTokenizer) {
  write_theirs();
  std::filesystem::remove(theirs_.path("tokenizer.json"));
  theirs_.write("tokenizer.model", "\xFF");
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_FALSE(take(tokenizer));
  EXPECT_EQ(tokenizer.companions.size(), 0U);
  EXPECT_EQ(tokenizer.special, std::nullopt);
}

TEST_F(Companions, DoNotNameTokensBeyondTheVocabulary) {
  write_theirs();
  for (const char* tokens :
       {R"("eos_token_id": 300)", R"("eos_token_id": [11, 300])", R"("pad_token_id": 4294967296)"}) {
    theirs_.write("generation_config.json", std::string("{") + tokens + "}");
    FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
    EXPECT_TRUE(take(tokenizer));
    EXPECT_FALSE(tokenizer.companions.contains("generation_config.json")) << tokens;
  }
}

TEST_F(Companions, AreKeptAsTheyAre) {
  write_theirs();
  files_["tokenizer.model"] = std::string("\xFF\0", 2);
  theirs_.write("tokenizer.model", files_["tokenizer.model"]);
  const std::string kept = folder_.path("kept");
  FolderTokenizer before = {.tokenizer = data::load_tokenizer("bytes")};
  ASSERT_TRUE(take(before));
  EXPECT_FALSE(has_kept_companions(kept));
  keep_companions(kept, before);
  EXPECT_TRUE(has_kept_companions(kept));
  FolderTokenizer after = {.tokenizer = data::load_tokenizer("bytes")};
  ASSERT_TRUE(take_companions(kept, 300, after));
  EXPECT_EQ(after.companions, files_);
  EXPECT_EQ(after.special, before.special);
}

TEST_F(Companions, SomebodyElsesFilesCanBeIgnored) {
  write_theirs();
  for (const char* text : {"{", "[1, 2]", "{}"}) {
    theirs_.write("config.json", text);
    FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
    EXPECT_TRUE(take_companions(theirs_.path(""), 300, tokenizer, WhenCorrupt::ignore));
    EXPECT_EQ(tokenizer.companions, files_);
    EXPECT_EQ(tokenizer.special, (SpecialTokens{.begin_of_text = 'a', .ends_of_text = {256}})) << text;
  }
}

TEST_F(Companions, WithoutATokenizerOnlyWhatSpeaksOfTheModelIsTaken) {
  write_theirs();
  FolderTokenizer none;
  EXPECT_TRUE(take(none));
  EXPECT_EQ(none.companions.size(), 1U);
  EXPECT_EQ(none.companions["generation_config.json"], files_["generation_config.json"]);
  EXPECT_EQ(none.special, (SpecialTokens{.begin_of_text = 10, .ends_of_text = {11, 299}}));
}

TEST_F(Companions, NameTheTokensWhereThereIsNoModel) {
  write_theirs();
  std::filesystem::remove(theirs_.path("config.json"));
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_TRUE(take(tokenizer));
  EXPECT_EQ(tokenizer.special, (SpecialTokens{.begin_of_text = 'a', .ends_of_text = {256}}));
}

TEST_F(Companions, AFolderWithoutAnyGivesNothing) {
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_FALSE(take(tokenizer));
  EXPECT_FALSE(take_companions(theirs_.path("none"), 300, tokenizer));
  write_theirs();
  theirs_.write("config.json", "{");
  EXPECT_THAT(error_of<DataError>([&] { take(tokenizer); }), HasSubstr("config.json"));
}

TEST_F(SavedFolder, ALargeOneIsSeveralWithAnIndex) {
  save(6);
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("config.json", "generation_config.json", "model.safetensors.index.json",
                                   "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                   "model-00003-of-00003.safetensors"));
  const auto index = nlohmann::json::parse(folder_.read("model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 16);
  EXPECT_EQ(index["weight_map"]["c"], "model-00002-of-00003.safetensors");
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(content(name)[0], *name);
  EXPECT_THAT(ModelFolder(path_).names(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(SavedFolder, WeightsThatWereThereBeforeAreReplaced) {
  for (const std::uint64_t limit : {6, 100, 4, 6}) {
    save(limit);
    EXPECT_EQ(ModelFolder(path_).names().size(), 4U) << limit;
  }
  EXPECT_EQ(folder_.names().size(), 6U);
}

TEST_F(SavedFolder, IsReplacedAsAWhole) {
  save(6);
  folder_.write("model-00007-of-00009.safetensors", "of another model");
  const std::string partial = std::filesystem::path(path_).parent_path().string() + ".partial";
  std::filesystem::create_directories(partial);
  std::ofstream(partial + "/model.safetensors.left_by_a_crash") << "x";
  save(100);
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("config.json", "generation_config.json", "model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST_F(SavedFolder, WhatIsNoneIsNeverReplaced) {
  const std::string path = std::filesystem::path(path_).parent_path().string();
  folder_.write("notes.txt", "x");
  EXPECT_THAT(test::error_of<UsageError>([&] { save(100); }), HasSubstr("holds notes.txt"));
  EXPECT_THAT(folder_.names(), ElementsAre("notes.txt"));
  std::filesystem::remove(folder_.path("notes.txt"));
  std::filesystem::create_directories(folder_.path("checkpoints"));
  EXPECT_THROW(save(100), UsageError);
  std::filesystem::remove(folder_.path("checkpoints"));
  std::filesystem::create_directories(path + ".partial/mine");
  EXPECT_THROW(save(100), UsageError);
  std::filesystem::remove_all(path + ".partial");
  path_ = folder_.path("file");
  folder_.write("file", "x");
  EXPECT_THAT(test::error_of<UsageError>([&] { save(100); }), HasSubstr("is a file"));
  EXPECT_EQ(folder_.read("file"), "x");
}

TEST_F(SavedFolder, StaysWhenTheNewOneCannotBeWritten) {
  save(100);
  std::vector<OutgoingTensor> broken = tensors();
  broken.back().fill = [](Bytes) { throw UsageError("no space left"); };
  EXPECT_THROW(save_folder(path_, {.model = gpt_model()}, std::move(broken), {}), UsageError);
  EXPECT_EQ(content("c"), "ccccccccc");
  EXPECT_EQ(ModelFolder(path_).config().model.name, spec::ModelFamily::llama);
  EXPECT_FALSE(std::filesystem::exists(folder_.path().string() + ".partial"));
}

TEST_F(SavedFolder, AnIndexThatLeadsElsewhereIsRefused) {
  save(6);
  for (const char* map : {R"({})", R"({"a":1})", R"({"a":"../x.safetensors"})", R"({"a":"/etc/passwd"})",
                          R"({"a":"..\u0000.safetensors"})", R"({"a":[[]]})", "1"}) {
    folder_.write("model.safetensors.index.json", R"({"weight_map":)" + std::string(map) + "}");
    EXPECT_THROW(ModelFolder{path_}, DataError) << map;
  }
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"a":"missing.safetensors"}})");
  EXPECT_THROW(ModelFolder{path_}, UsageError);
}

TEST_F(SavedFolder, AFolderThatIsNoneIsTheUsersMistake) {
  const auto refusal = [](const std::string& path) {
    return error_of<UsageError>([&] { ModelFolder{path}; });
  };
  EXPECT_THAT(refusal(path_), HasSubstr("there is no config.json"));
  const std::string none = folder_.path("none");
  EXPECT_EQ(refusal(none), none + ": there is no such folder");
  const std::string run = folder_.path("run");
  folder_.write("run/checkpoints/step-1/manifest.json", "{}");
  EXPECT_EQ(refusal(run),
            run + ": it holds a checkpoint: make a folder of weights with `lockstep checkpoint export " +
                run + " --hf FOLDER`");
  folder_.write("run/model/config.json", "{}");
  EXPECT_EQ(refusal(run), run + ": it is the folder of a run: name its model, " + run + "/model");
}

TEST_F(SavedFolder, ADescriptionThatIsTooLongIsBadData) {
  folder_.write("config.json", std::string((1U << 20) + 1, ' '));
  EXPECT_EQ(
      error_of<DataError>([&] { ModelFolder{path_}; }),
      folder_.path("config.json") + ": 1048577 bytes are more than the 1048576 that such a file may have");
}

}  // namespace
}  // namespace lockstep::checkpoint
