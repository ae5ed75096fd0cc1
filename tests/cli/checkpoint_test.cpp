// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint` as users meet it.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/checkpoint/saved.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/cli/program.h"

namespace lockstep::testing {
namespace {

using checkpoint::CheckpointStore;
using checkpoint::Manifest;
using checkpoint::testing::Cut;
using checkpoint::testing::full_tensor;
using checkpoint::testing::FullTensor;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// A run with two checkpoints that several ranks have written by columns, and one by a single rank.
class CheckpointCommand : public ::testing::Test {
 protected:
  CheckpointCommand() {
    for (const std::int64_t step : {10, 20}) save("run/checkpoints", kByColumns, manifest(step));
    save("alone", checkpoint::testing::uncut(tensors_), manifest(20));
  }

  Manifest manifest(std::int64_t step) const { return checkpoint::testing::manifest_of(tensors_, step); }
  void save(const std::string& store, const Cut& cut, const Manifest& manifest) {
    checkpoint::testing::HastyDisk disk;
    CheckpointStore opened(folder_.path(store), disk);
    checkpoint::testing::save(opened, disk, tensors_, cut, manifest);
  }
  Finished run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "checkpoint");
    return run_program(std::move(arguments));
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  void damage(const std::string& name) { folder_.write(name, "damaged"); }

  static inline const Cut kByColumns = {{{0, {0, 1, 3, 2}}, {1, {0, 4, 4, 1}}}, {{0, {1, 2, 3, 2}}}};
  TemporaryFolder folder_;
  std::vector<FullTensor> tensors_ = {full_tensor("model.a", {2, 3}), full_tensor("model.b", {4})};
};

TEST_F(CheckpointCommand, ListsThem) {
  folder_.write("run/checkpoints/step-30.partial-x/rank-0.safetensors", "half");
  for (const char* name : {"run", "run/checkpoints"}) {
    const Finished finished = run({"ls", path(name)});
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    EXPECT_THAT(finished.output,
                MatchesRegex("  +step +size tensors +loss  written by  path\n"
                             "\\* +20 +[0-9]+ B +2 +2.5000  a test +[^ ]*/run/checkpoints/step-20\n"
                             "  +10 +[0-9]+ B +2 +2.5000  a test +[^ ]*/run/checkpoints/step-10\n"
                             "! +30 cannot be used: it is being written, or its writer died [^ ]*\n"
                             "\\* the newest\n"));
  }
  damage("run/checkpoints/step-20/rank-1.safetensors");
  const json listed = json::parse(run({"ls", path("run"), "--json"}).output)["checkpoints"];
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0]["usable"], false);
  EXPECT_THAT(listed[0]["problem"], HasSubstr("rank-1.safetensors at byte 7: the file ends here"));
  EXPECT_EQ(listed[1]["newest"], true);
  EXPECT_EQ(listed[1]["loss"], 2.5);
  EXPECT_EQ(listed[2]["step"], 30);
}

TEST_F(CheckpointCommand, ListsOneWithoutALoss) {
  save("begin", checkpoint::testing::uncut(tensors_), manifest(0));
  EXPECT_THAT(run({"ls", path("begin")}).output,
              MatchesRegex("(.|\n)*\\* +0 +[0-9]+ B +2 +-  a test (.|\n)*"));
  EXPECT_EQ(json::parse(run({"ls", path("begin"), "--json"}).output)["checkpoints"][0]["loss"], json());
}

TEST_F(CheckpointCommand, ListsOne) {
  EXPECT_THAT(run({"ls", path("run/checkpoints/step-10")}).output,
              AllOf(HasSubstr("*         10 "), Not(HasSubstr("step-20"))));
}

TEST_F(CheckpointCommand, ShowsWhatIsInOne) {
  const Finished finished = run({"inspect", path("run")});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output,
              AllOf(HasSubstr("/step-20\n  written by        a test\n  arithmetic        not known\n"
                              "  step              20\n"),
                    HasSubstr("data_position     160\n"), HasSubstr("tokenizer_digest  none\n"),
                    HasSubstr("2 files\n  rank-0.safetensors  "),
                    HasSubstr("2 tensors\n  model.a  [2, 3]  2 pieces in 2 files\n"
                              "  model.b  [4]     rank-0.safetensors\n"),
                    HasSubstr("configuration\n  [model]\n  name = \"gpt\"\n")));
  const json shown = json::parse(run({"inspect", "--json", path("run/checkpoints/step-10")}).output);
  EXPECT_EQ(shown["progress"]["step"], 10);
  EXPECT_EQ(shown["tensors"][0]["shape"], json({2, 3}));
  EXPECT_EQ(shown["tensors"][0]["files"], json({"rank-0.safetensors", "rank-1.safetensors"}));
  EXPECT_EQ(shown["configuration"], "[model]\nname = \"gpt\"\n");
}

TEST_F(CheckpointCommand, ChecksAllHashes) {
  const Finished good = run({"verify", path("run")});
  EXPECT_EQ(good.exit_code, 0) << good.error_output;
  EXPECT_EQ(good.output,
            "good  " + path("run/checkpoints/step-20") + "\ngood  " + path("run/checkpoints/step-10") + "\n");
  std::string shard = folder_.read("run/checkpoints/step-10/rank-0.safetensors");
  shard.back() ^= 1;
  folder_.write("run/checkpoints/step-10/rank-0.safetensors", shard);
  const Finished bad = run({"verify", path("run")});
  EXPECT_EQ(bad.exit_code, 65);
  EXPECT_THAT(bad.error_output,
              AllOf(HasSubstr("lockstep: 1 of 2 checkpoints are bad"),
                    HasSubstr("step-10/rank-0.safetensors at byte "), HasSubstr("tensor 'model.b'")));
  EXPECT_THAT(bad.output, HasSubstr("BAD   " + path("run/checkpoints/step-10") + "\n"));
  EXPECT_EQ(run({"verify", path("run/checkpoints/step-20")}).exit_code, 0);
  const Finished one = run({"verify", "--json", path("run/checkpoints/step-10")});
  EXPECT_EQ(one.exit_code, 65);
  EXPECT_EQ(json::parse(one.output)["checkpoints"][0]["good"], false);
}

TEST_F(CheckpointCommand, NamesWhatShouldHaveBeenACheckpoint) {
  folder_.write("run/checkpoints/step-20/COMMIT", "");
  const Finished finished = run({"verify", path("run")});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, AllOf(HasSubstr("good  " + path("run/checkpoints/step-10") + "\n"),
                                     HasSubstr("none  " + path("run/checkpoints/step-20") + ": it ")));
}

TEST_F(CheckpointCommand, OneHashForAnyCut) {
  const Finished columns = run({"hash", path("run")});
  EXPECT_EQ(columns.exit_code, 0) << columns.error_output;
  EXPECT_THAT(columns.output, MatchesRegex("[0-9a-f]{32}  [^ ]*/run/checkpoints/step-20\n"));
  const std::string digest = columns.output.substr(0, 32);
  EXPECT_EQ(run({"hash", path("alone")}).output, digest + "  " + path("alone/step-20") + "\n");
  EXPECT_EQ(json::parse(run({"hash", "--json", path("alone")}).output)["hash"], digest);
  EXPECT_NE(run({"hash", path("run/checkpoints/step-10")}).output.substr(0, 32), digest);
}

TEST_F(CheckpointCommand, ComparesTwo) {
  const Finished equal = run({"diff", path("run"), path("alone")});
  EXPECT_EQ(equal.exit_code, 0) << equal.error_output;
  EXPECT_EQ(equal.output, "equal: 2 tensors, progress and configuration\n");

  Manifest elsewhere = manifest(20);
  elsewhere.configuration = "[job]\ndump_folder = \"elsewhere\"\n" + elsewhere.configuration;
  save("elsewhere", checkpoint::testing::uncut(tensors_), elsewhere);
  EXPECT_EQ(run({"diff", path("run"), path("elsewhere")}).exit_code, 0) << "where a run is does not matter";

  tensors_[0].values[4] = -1.5F;
  tensors_.push_back(full_tensor("model.c", {1}));
  Manifest other = manifest(20);
  other.progress.loss = 3;
  other.configuration = "[model]\nname = \"llama\"\n[training]\nsteps = 5\n";
  save("other", checkpoint::testing::uncut(tensors_), other);
  const Finished different = run({"diff", path("run"), path("other")});
  EXPECT_EQ(different.exit_code, 1);
  EXPECT_EQ(different.error_output, "");
  EXPECT_EQ(different.output,
            "different in 5 places\n"
            "  tensor model.a, element 4 [1, 1]: 1024.1094 and -1.5\n"
            "  shape of tensor model.c: none and [1]\n"
            "  progress.loss: 2.5 and 3\n"
            "  configuration model.name: \"gpt\" and \"llama\"\n"
            "  configuration training.steps: none and 5\n");
  const json found = json::parse(run({"diff", "--json", path("run"), path("other")}).output);
  EXPECT_EQ(found["equal"], false);
  EXPECT_EQ(found["differences"][0]["second"], "-1.5");
}

TEST_F(CheckpointCommand, LayoutsAreNoDifference) {
  Manifest laid_out = manifest(20);
  laid_out.configuration += "[parallelism]\npipeline = 2\nlanes = 4\n[zero]\noffload = \"disk\"\n";
  save("first", checkpoint::testing::uncut(tensors_), laid_out);
  laid_out.configuration =
      manifest(20).configuration + "[parallelism]\npipeline = 1\nlanes = 4\n[zero]\noffload = \"none\"\n";
  save("second", checkpoint::testing::uncut(tensors_), laid_out);
  const Finished equal = run({"diff", path("first"), path("second")});
  EXPECT_EQ(equal.exit_code, 0) << equal.error_output;
  EXPECT_EQ(equal.output,
            "equal: 2 tensors, progress and configuration\n"
            "on other layouts, which change no value\n"
            "  configuration parallelism.pipeline: 2 and 1\n"
            "  configuration zero.offload: \"disk\" and \"none\"\n");
  const json found = json::parse(run({"diff", "--json", path("first"), path("second")}).output);
  EXPECT_EQ(found["equal"], true);
  EXPECT_EQ(found["differences"].size(), 0U);
  EXPECT_EQ(found["layout"].size(), 2U);

  laid_out.configuration = manifest(20).configuration + "[parallelism]\nlanes = 8\n";
  save("third", checkpoint::testing::uncut(tensors_), laid_out);
  const Finished different = run({"diff", path("second"), path("third")});
  EXPECT_EQ(different.exit_code, 1);
  EXPECT_THAT(different.output,
              HasSubstr("different in 1 places\n  configuration parallelism.lanes: 4 and 8\n"));
}

TEST_F(CheckpointCommand, WhatANameSaysIsNotActedOn) {
  tensors_[0].logical.name = "model.\033[31m";
  save("hostile", checkpoint::testing::uncut(tensors_), manifest(20));
  EXPECT_THAT(run({"inspect", path("hostile")}).output,
              AllOf(HasSubstr("model.\\x1b[31m"), Not(HasSubstr("\033"))));
}

TEST_F(CheckpointCommand, WhatAFolderIsCalledIsNotActedOn) {
  const std::string store = "run\033[31m/checkpoints";
  const std::string shown = "run\\x1b[31m/checkpoints/step-20";
  save(store, checkpoint::testing::uncut(tensors_), manifest(20));
  for (const char* command : {"ls", "inspect", "verify", "hash"}) {
    EXPECT_THAT(run({command, path(store)}).output, AllOf(HasSubstr(shown), Not(HasSubstr("\033"))))
        << command;
  }
  folder_.write(store + "/step-20/COMMIT", "");
  EXPECT_THAT(run({"ls", path(store)}).output, AllOf(HasSubstr(shown), Not(HasSubstr("\033"))));
}

// Columns stand below one another as they are shown.
TEST_F(CheckpointCommand, WhatIsShownOtherwiseKeepsItsColumn) {
  tensors_[0].logical.name = "model.\033";
  Manifest strange = manifest(20);
  strange.written_by = "\033\033\033";
  save("hostile", checkpoint::testing::uncut(tensors_), strange);
  EXPECT_THAT(run({"inspect", path("hostile")}).output,
              AllOf(HasSubstr("\n  model.\\x1b  [2, 3]  "), HasSubstr("\n  model.b     [4]     ")));
  EXPECT_THAT(run({"ls", path("hostile")}).output,
              AllOf(HasSubstr("  written by    path\n"), HasSubstr("  \\x1b\\x1b\\x1b  /")));
}

TEST_F(CheckpointCommand, RefusesWhatIsNone) {
  expect_refusal(run({}), 2, "lockstep checkpoint needs a command");
  expect_refusal(run({"lst"}), 2, "did you mean 'ls'?");
  expect_refusal(run({"ls"}), 2, "PATH");
  expect_refusal(run({"diff", path("run")}), 2, "B");
  for (const char* command : {"ls", "inspect", "verify", "hash"}) {
    expect_refusal(run({command, path("none")}), 2, "none does not exist: name the folder of one");
  }
  std::filesystem::remove(path("alone/step-20/COMMIT"));
  expect_refusal(run({"hash", path("alone")}), 2, "was committed");
  expect_refusal(run({"hash", path("alone/step-20")}), 65, "step-20 was never committed");
  damage("run/checkpoints/step-20/manifest.json");
  expect_refusal(run({"inspect", path("run")}), 65, "manifest.json is not what was committed");
}

}  // namespace
}  // namespace lockstep::testing
