// SPDX-License-Identifier: Apache-2.0
//
// What is done with the folder that `lockstep train` leaves, as users call it: eval, generate, train further.
#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kPlaces = 48;

// A model of bytes that has learned "abcdefgh" over and over; trained once for all tests.
class ModelFolder : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    std::string text;
    for (int i = 0; i < 600; ++i) text += "abcdefgh";
    const std::string file = folder_->write("text.txt", text);
    ASSERT_EQ(run_program({"prepare", file, "--tokenizer", "bytes", "--output", corpus()}).exit_code, 0);
    run_file_ = folder_->write("run.toml", R"([model]
name = "llama"
layers = 1
width = 32
heads = 4
kv_heads = 2
ffn_width = 64
vocab_size = 257
max_seq_len = )" + std::to_string(kPlaces) + "\n[data]\ntrain = [\"" +
                                               corpus() + R"("]
[training]
steps = 60
seq_len = 32
micro_batch_size = 4
[optimizer]
lr = 1e-2
[parallelism]
lanes = 2
)");
    const Finished trained =
        run_program({"train", run_file_, "--workers", "2", "--job.dump_folder", folder_->path("run")});
    ASSERT_EQ(trained.exit_code, 0) << trained.error_output;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string corpus() { return folder_->path("corpus"); }
  static std::string model() { return folder_->path("run") + "/model"; }

  static Finished generate(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"generate", model()});
    return run_program(std::move(flags));
  }
  static std::string text_of(const std::vector<std::string>& flags) {
    const Finished finished = generate(flags);
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    return finished.output;
  }
  // Expects this code, and one sentence; gives it.
  static std::string sentence(const Finished& finished, int code) {
    EXPECT_EQ(finished.exit_code, code) << finished.error_output;
    EXPECT_THAT(finished.error_output, StartsWith("lockstep: "));
    EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
    return finished.error_output;
  }
  // A copy of the model with other bytes in one of its files.
  static std::string copy_with(const std::string& file, const std::string& content) {
    const std::string copy = folder_->path("copy");
    std::filesystem::remove_all(copy);
    std::filesystem::copy(model(), copy);
    std::ofstream(copy + "/" + file, std::ios::binary | std::ios::trunc) << content;
    return copy;
  }

  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline std::string run_file_;
};

TEST_F(ModelFolder, GreedyTextIsWhatWasLearned) {
  EXPECT_EQ(text_of({"--prompt", "cde", "--temperature", "0", "--max-tokens", "9"}), "cdefghabcdef\n");
  EXPECT_EQ(text_of({"--prompt", "cde", "--top-k", "1", "--max-tokens", "9"}), "cdefghabcdef\n");
  EXPECT_EQ(text_of({"--prompt", "cde", "--top-p", "0.000001", "--max-tokens", "9"}), "cdefghabcdef\n");
}

TEST_F(ModelFolder, TheSeedDecidesTheText) {
  const std::vector<std::string> wild = {"--prompt", "a", "--temperature", "5", "--seed"};
  const auto with_seed = [&](const std::string& seed) {
    std::vector<std::string> flags = wild;
    flags.push_back(seed);
    return text_of(flags);
  };
  EXPECT_EQ(with_seed("7"), with_seed("7"));
  EXPECT_NE(with_seed("7"), with_seed("8"));
}

TEST_F(ModelFolder, TextEndsWhereTheModelHasNoMorePlaces) {
  const std::string text = text_of({"--prompt", "abc", "--temperature", "0", "--max-tokens", "1000"});
  EXPECT_EQ(text.size(), kPlaces + 1U + 1U) << "the last byte is never read, and a line break follows";
}

TEST_F(ModelFolder, AnEmptyPromptBeginsADocument) {
  EXPECT_EQ(text_of({"--max-tokens", "5", "--temperature", "0"}),
            text_of({"--prompt", "", "--max-tokens", "5", "--temperature", "0"}));
}

TEST_F(ModelFolder, PromptsOfAnyAlphabetAreRepeatedAsTheyAre) {
  const std::string prompt = "na\xC3\xAFve \xF0\x9F\x90\x88 \xE6\xBC\xA2";
  EXPECT_THAT(text_of({"--prompt", prompt, "--max-tokens", "3"}), StartsWith(prompt));
}

TEST_F(ModelFolder, BadPromptsGetOneSentence) {
  EXPECT_THAT(sentence(generate({"--prompt", std::string(kPlaces, 'a')}), 2),
              HasSubstr("no room in the 48 places"));
  EXPECT_THAT(sentence(generate({"--prompt", "ab\xFF"}), 2), HasSubstr("--prompt is not valid UTF-8"));
  EXPECT_THAT(sentence(generate({"--temperature", "-1"}), 2), HasSubstr("--temperature"));
  EXPECT_THAT(sentence(generate({"--top-p", "0"}), 2), HasSubstr("--top-p"));
  EXPECT_THAT(sentence(generate({"--promt", "a"}), 2), HasSubstr("--prompt"));
}

// Many tokens of this model have no text, and all are about equally likely.
TEST_F(ModelFolder, TokensWithoutTextAreNeverChosen) {
  const std::string run = folder_->path("holes");
  ASSERT_EQ(run_program({"train", run_file_, "--model.vocab_size", "400", "--training.steps", "1",
                         "--job.dump_folder", run})
                .exit_code,
            0);
  auto tokenizer = nlohmann::json::parse(read_file(run + "/model/tokenizer.json"));
  tokenizer["added_tokens"].push_back({{"id", 390}, {"content", "<|last|>"}, {"special", true}});
  std::ofstream(run + "/model/tokenizer.json") << tokenizer.dump();
  for (const char* seed : {"1", "2", "3"}) {
    const Finished finished = run_program({"generate", run + "/model", "--temperature", "1000", "--top-k",
                                           "0", "--prompt", "a", "--seed", seed});
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  }
}

TEST_F(ModelFolder, EveryTokenThatEndsATextDoes) {
  auto config = nlohmann::json::parse(read_file(model() + "/config.json"));
  config["eos_token_id"] = {256, 'g', 'e'};
  const Finished finished = run_program(
      {"generate", copy_with("config.json", config.dump()), "--prompt", "ab", "--temperature", "0"});
  EXPECT_EQ(finished.output, "abcd\n") << finished.error_output;
}

TEST_F(ModelFolder, EvaluatesACorpus) {
  const Finished finished = run_program({"eval", model(), "--data", corpus(), "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  const auto report = nlohmann::json::parse(finished.output);
  const double loss = report.at("loss");
  EXPECT_LT(loss, 0.5) << "the text was learned";
  EXPECT_NEAR(report.at("perplexity"), std::exp(loss), 1e-9);
  EXPECT_EQ(report.at("seq_len"), kPlaces);
  EXPECT_EQ(report.at("tokens").get<int>() % kPlaces, 0);
  EXPECT_THAT(run_program({"eval", model(), "--data", corpus()}).output, HasSubstr("perplexity 1."));
  EXPECT_THAT(
      run_program({"eval", model(), "--data", corpus(), "--sequences", "2", "--seq-len", "16"}).output,
      HasSubstr("over 32 tokens in sequences of 16"));
}

TEST_F(ModelFolder, ASignalEndsItWithOneSentence) {
  const std::string text = folder_->write("long.txt", std::string(4'000'000, 'a'));
  const std::string data = folder_->path("long");
  ASSERT_EQ(run_program({"prepare", text, "--tokenizer", "bytes", "--output", data}).exit_code, 0);
  nlohmann::json config = nlohmann::json::parse(read_file(model() + "/config.json"));
  config["max_position_embeddings"] = 1'000'000;
  config.erase("eos_token_id");
  const std::string roomy = copy_with("config.json", config.dump());
  const auto interrupted = [](std::vector<std::string> command, int signal) {
    Program program(std::move(command));
    wait_until_taken(program.pid(), signal);
    program.signal(signal);
    return program.finish();
  };
  EXPECT_EQ(sentence(interrupted({"eval", model(), "--data", data, "--seq-len", "1"}, SIGINT), 130),
            "lockstep: interrupted by SIGINT: the loss is not known yet; the same command begins anew\n");
  const Finished generated = interrupted(
      {"generate", roomy, "--prompt", "abc", "--temperature", "0", "--max-tokens", "1000000"}, SIGTERM);
  EXPECT_EQ(sentence(generated, 143),
            "lockstep: interrupted by SIGTERM: the text is not complete; the same command makes it again\n");
}

TEST_F(ModelFolder, BadCorporaGetOneSentence) {
  EXPECT_THAT(sentence(run_program({"eval", model(), "--data", folder_->path("none")}), 2),
              HasSubstr("none"));
  EXPECT_THAT(sentence(run_program({"eval", model(), "--data", corpus(), "--seq-len", "49"}), 2),
              HasSubstr("longer than the 48 places"));
}

TEST_F(ModelFolder, BadFoldersGetOneSentence) {
  const auto generated = [](const std::string& folder) { return run_program({"generate", folder}); };
  EXPECT_THAT(sentence(generated(folder_->path("nowhere")), 2), HasSubstr("nowhere"));
  const std::string run = folder_->path("run");
  for (const Finished& finished : {generated(run), run_program({"eval", run, "--data", corpus()})}) {
    EXPECT_EQ(sentence(finished, 2),
              "lockstep: " + run + ": it is the folder of a run: name its model, " + model() + "\n");
  }
  EXPECT_THAT(sentence(generated(copy_with("config.json", "{")), 65), HasSubstr("config.json"));
  EXPECT_THAT(sentence(generated(copy_with("model.safetensors", "")), 65), HasSubstr("model.safetensors"));
  const std::string whole = read_file(model() + "/model.safetensors");
  EXPECT_THAT(sentence(generated(copy_with("model.safetensors", whole.substr(0, whole.size() - 4))), 65),
              HasSubstr("model.safetensors"));
  EXPECT_THAT(sentence(generated(copy_with("tokenizer.json", "[]")), 65), HasSubstr("tokenizer.json"));
  const std::string without = copy_with("tokenizer.json", "");
  std::filesystem::remove(without + "/tokenizer.json");
  EXPECT_THAT(sentence(generated(without), 2), HasSubstr("tokenizer.json"));
}

// What is described could be made only of more memory than there is.
TEST_F(ModelFolder, AModelThatIsFarLargerThanItsWeightsIsBadData) {
  auto config = nlohmann::json::parse(read_file(model() + "/config.json"));
  config["num_hidden_layers"] = 10000;
  config["vocab_size"] = 1 << 24;
  const std::string large = copy_with("config.json", config.dump());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"generate", large},
        {"eval", large, "--data", corpus()},
        {"checkpoint", "import", folder_->path("store"), "--hf", large}}) {
    EXPECT_THAT(sentence(run_program(command), 65), HasSubstr("copy/config.json: it describes a model of "));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_->path("store")));
}

TEST_F(ModelFolder, ARunBeginsWithWeightsThatAreThere) {
  const auto begin = [&](const std::string& path) {
    return sentence(
        run_program({"train", run_file_, "--init-from", path, "--job.dump_folder", folder_->path("refused")}),
        2);
  };
  const std::string what =
      ": name the folder of a run, a checkpoint (with manifest.json) or a Hugging Face folder (with "
      "config.json)\n";
  const std::string none = folder_->path("none");
  EXPECT_EQ(begin(none), "lockstep: " + none +
                             ", whose weights the run is to begin with (--init-from), is not there" + what);
  const std::string empty = folder_->path("empty");
  std::filesystem::create_directory(empty);
  EXPECT_EQ(begin(empty),
            "lockstep: " + empty + ", whose weights the run is to begin with (--init-from), has none" + what);
  EXPECT_FALSE(std::filesystem::exists(folder_->path("refused")));
}

TEST_F(ModelFolder, TheEnvironmentGivesTheThreads) {
  const std::vector<std::string> eval = {"eval", model(), "--data", corpus()};
  const std::vector<std::string> generate = {"generate", model(), "--prompt", "cde"};
  for (const auto& command : {eval, generate}) {
    const Finished usual = run_program(command);
    const Finished one = run_program(command, {{"LOCKSTEP_THREADS", "1"}, {"SLURM_NTASKS", "4"}});
    EXPECT_EQ(one.exit_code, 0) << one.error_output;
    EXPECT_EQ(one.output, usual.output);
    EXPECT_THAT(sentence(run_program(command, {{"LOCKSTEP_THREADS", "none"}}), 2),
                HasSubstr("LOCKSTEP_THREADS is 'none'"));
  }
}

TEST_F(ModelFolder, HasTheTokenizerOfACorpusByWhateverName) {
  for (const std::string& name : {corpus() + ".bin", corpus() + ".idx", corpus() + "*.bin"}) {
    const std::string run = folder_->path("named");
    const auto train = [&](const std::string& vocabulary) {
      return run_program({"train", run_file_, "--data.train", name, "--model.vocab_size", vocabulary,
                          "--training.steps", "1", "--job.dump_folder", run, "--job.overwrite", "true"});
    };
    EXPECT_EQ(train("257").exit_code, 0) << name;
    EXPECT_EQ(read_file(run + "/model/tokenizer.json"), read_file(model() + "/tokenizer.json")) << name;
    EXPECT_THAT(sentence(train("256"), 2), HasSubstr("the tokenizer of this run has 257 tokens")) << name;
    std::filesystem::remove_all(run);
  }
}

// A public model that is trained further is used as before.
TEST_F(ModelFolder, KeepsWhatAFolderSaysOfItsTokens) {
  auto config = nlohmann::json::parse(read_file(model() + "/config.json"));
  config["bos_token_id"] = 1;
  config["eos_token_id"] = {2, 256};
  const std::string theirs = folder_->path("theirs");
  std::filesystem::remove_all(theirs);
  std::filesystem::copy(copy_with("config.json", config.dump()), theirs);
  const std::vector<std::pair<std::string, std::string>> companions = {
      {"/tokenizer_config.json", R"({"bos_token": "a", "chat_template": "{{ x }}"})"},
      {"/special_tokens_map.json", R"({"bos_token": "a"})"},
      {"/generation_config.json", R"({"temperature": 0.6})"}};
  for (const auto& [name, text] : companions) std::ofstream(theirs + name, std::ios::trunc) << text;
  const auto expect_the_same = [&](const std::string& written) {
    for (const auto& [name, text] : companions) EXPECT_EQ(read_file(written + name), text) << name;
    const auto found = nlohmann::json::parse(read_file(written + "/config.json"));
    EXPECT_EQ(found["bos_token_id"], config["bos_token_id"]);
    EXPECT_EQ(found["eos_token_id"], config["eos_token_id"]);
  };

  const std::string run = folder_->path("begun");
  const auto train = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"train", run_file_, "--init-from", theirs, "--job.dump_folder", run});
    const Finished finished = run_program(flags);
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  };
  train({"--training.steps", "2"});
  expect_the_same(run + "/model");
  train({"--training.steps", "3", "--resume", "auto"});
  expect_the_same(run + "/model");
  const std::string exported = folder_->path("exported");
  ASSERT_EQ(run_program({"checkpoint", "export", run, "--hf", exported}).exit_code, 0);
  expect_the_same(exported);

  // With the folder gone, and without its name.
  const std::string gone = folder_->path("gone");
  std::filesystem::rename(theirs, gone);
  train({"--training.steps", "4", "--resume", "auto"});
  expect_the_same(run + "/model");
  const std::string elsewhere = folder_->path("elsewhere");
  using Again = std::array<std::string, 3>;
  for (const auto& [into, resumed, steps] : {Again{run, "auto", "5"}, Again{elsewhere, run, "6"}}) {
    const Finished finished = run_program(
        {"train", run_file_, "--job.dump_folder", into, "--training.steps", steps, "--resume", resumed});
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
    expect_the_same(into + "/model");
    const Finished further = run_program({"checkpoint", "export", into, "--hf", into + "_exported"});
    ASSERT_EQ(further.exit_code, 0) << further.error_output;
    expect_the_same(into + "_exported");
  }
  std::filesystem::rename(gone, theirs);

  // Not for a run that takes its place.
  const Finished replaced = run_program({"train", run_file_, "--job.dump_folder", elsewhere,
                                         "--training.steps", "1", "--job.overwrite", "true"});
  ASSERT_EQ(replaced.exit_code, 0) << replaced.error_output;
  EXPECT_EQ(read_file(elsewhere + "/model/tokenizer_config.json"),
            read_file(model() + "/tokenizer_config.json"));

  const std::string fresh = folder_->path("fresh");
  const Finished finished = run_program({"train", run_file_, "--data.tokenizer", theirs + "/tokenizer.json",
                                         "--training.steps", "1", "--job.dump_folder", fresh});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  expect_the_same(fresh + "/model");
}

TEST_F(ModelFolder, ATokenizerMayHaveSomebodyElsesFilesBesideIt) {
  const std::string copy = copy_with("config.json", "[1, 2]");
  const std::string run = folder_->path("beside");
  const Finished finished = run_program({"train", run_file_, "--data.tokenizer", copy + "/tokenizer.json",
                                         "--training.steps", "1", "--job.dump_folder", run});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(read_file(run + "/model/config.json"), read_file(model() + "/config.json"));
}

TEST_F(ModelFolder, TrainsFurther) {
  const auto further = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"train", run_file_, "--checkpoint.initial_load_path", model(), "--job.dump_folder",
                  folder_->path("further"), "--training.steps", "2", "--workers", "2"});
    return run_program(flags);
  };
  ASSERT_EQ(further({}).exit_code, 0);
  std::ifstream metrics(folder_->path("further") + "/metrics.jsonl");
  std::string first;
  std::getline(metrics, first);
  EXPECT_LT(nlohmann::json::parse(first).at("loss"), 0.5) << "it begins where the other run ended";
  EXPECT_THAT(further({"--model.width", "64", "--job.overwrite", "true"}).error_output,
              HasSubstr("config.json says width = 32"));
}

TEST_F(ModelFolder, WithWhatIsNoNumberIsRefusedByName) {
  const std::string bad = folder_->path("bad");
  std::filesystem::copy(model(), bad, std::filesystem::copy_options::recursive);
  {
    std::fstream file(bad + "/model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end);
    file.write("\xff\xff\xff\xff", 4);
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"generate", bad, "--prompt", "ab"},
        {"eval", bad, "--data", corpus()},
        {"train", run_file_, "--init-from", bad, "--job.dump_folder", folder_->path("from-bad")}}) {
    const Finished finished = run_program(command);
    EXPECT_EQ(finished.exit_code, 65) << command.front();
    EXPECT_THAT(finished.error_output, HasSubstr(bad + ": tensor '"));
    EXPECT_THAT(finished.error_output, HasSubstr("' has no number at place "));
    EXPECT_EQ(lines_in(finished.error_output), 1) << finished.error_output;
  }
}

}  // namespace
}  // namespace lockstep::testing
