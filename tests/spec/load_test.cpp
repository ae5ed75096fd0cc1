// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/load.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

#include "tests/support/error_of.h"

namespace lockstep::spec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kWhole = R"(
[job]
dump_folder = "runs/kjv"            # checkpoints, logs, metrics, resolved configuration
[model]
name = "llama"
layers = 6
width = 384
heads = 6
kv_heads = 2
ffn_width = 1024
vocab_size = 4096
[data]
train = ["data/kjv", { path = "data/more", weight = 2.0 }]
validation = ["data/kjv_validation"]
tokenizer = "data/kjv.tokenizer.json"
[training]
steps = 600
seq_len = 256
micro_batch_size = 8
global_batch_size = 32
dtype = "bf16"
seed = 1
max_norm = 1.0
[optimizer]
name = "adamw"
lr = 1e-3
[lr_scheduler]
warmup_steps = 50
decay_type = "cosine"
[parallelism]
data = -1
tensor = 1
pipeline = 1
schedule = "1f1b"
virtual_stages = 1
zero_stage = 0
sequence_parallel = false
recompute = "none"
lanes = 0
tensor_lanes = 0
[comm]
all_reduce = "auto"
exact = true
[checkpoint]
interval = 200
[elastic]
enabled = true
[validation]
freq = 100
)";

std::string error_of(std::string_view text) {
  return test::error_of<UsageError>([&] { parse_run(text, "run.toml"); });
}

TEST(ParseRun, ReadsEverySection) {
  const RunSpec run = parse_run(kWhole, "run.toml");
  EXPECT_EQ(run.job.dump_folder, "runs/kjv");
  EXPECT_EQ(run.model.kv_heads, 2);
  EXPECT_EQ(run.data.train, (std::vector<Corpus>{{"data/kjv", 1.0}, {"data/more", 2.0}}));
  EXPECT_EQ(run.training.dtype, DType::bf16);
  EXPECT_EQ(run.training.global_batch_size, 32);
  EXPECT_EQ(run.optimizer.lr, 1e-3);
  EXPECT_EQ(run.lr_scheduler.decay_type, DecayType::cosine);
  EXPECT_EQ(run.checkpoint.interval, 200);
  EXPECT_EQ(run.validation.freq, 100);
}

TEST(ParseRun, TakesDefaultsAndWhatFollowsFromThem) {
  const RunSpec run = parse_run("", "run.toml");
  EXPECT_EQ(run.training, Training{});
  EXPECT_EQ(run.model.kv_heads, 6);
  EXPECT_EQ(run.model.head_width, 64);
  EXPECT_EQ(run.model.ffn_width, 1024);
  EXPECT_EQ(run.model.max_seq_len, run.training.seq_len);
}

TEST(ParseRun, PutsFlagsBeforeTheFileAndTheFileBeforeThePreset) {
  const std::vector<std::string> flags = {"--training.steps", "7", "--model.layers=3"};
  const RunSpec run = parse_run(
      "[model]\npreset = \"gpt2-124m\"\nheads = 6\nlayers = 4\n[training]\nsteps = 9", "run.toml", flags);
  EXPECT_EQ(run.model.name, ModelFamily::gpt);
  EXPECT_EQ(run.model.width, 768);
  EXPECT_EQ(run.model.layers, 3);
  EXPECT_EQ(run.training.steps, 7);
}

TEST(ParseRun, AFileReplacesNothingUnsaidOfAPresetThatAFlagNames) {
  const std::string file = "[model]\nname = \"llama\"\nlayers = 6\nwidth = 384\ndropout = 0.1\n";
  const std::vector<std::string> preset = {"--model.preset", "llama3-8b"};
  EXPECT_EQ(
      test::error_of<UsageError>([&] { (void)parse_run(file, "run.toml", preset); }),
      "run.toml:3: --model.preset llama3-8b is another model than the file says: model.layers is 6, not "
      "32, model.width is 384, not 4096; remove the lines, or give what shall differ as flags too");
  const std::vector<std::string> both = {"--model.preset", "llama3-8b", "--model.layers", "2"};
  EXPECT_THAT(test::error_of<UsageError>([&] { (void)parse_run(file, "run.toml", both); }),
              AllOf(HasSubstr("run.toml:4: "), Not(HasSubstr("model.layers"))));
  const RunSpec run = parse_run("[model]\nlayers = 6\ndropout = 0.1\n", "run.toml", both);
  EXPECT_EQ(run.model.layers, 2);
  EXPECT_EQ(run.model.width, 4096);
  EXPECT_EQ(run.model.dropout, 0.1);
  const std::string same =
      "[model]\npreset = \"gpt2-124m\"\nlayers = 32\nhead_width = 0\nmax_seq_len = 8192\n";
  EXPECT_EQ(parse_run(same, "run.toml", preset).model.layers, 32);
}

TEST(ParseRun, APresetThatAFlagNamesIsAlsoWhereItEqualsADefault) {
  const std::vector<std::string> preset = {"--model.preset", "llama-tiny"};
  EXPECT_THAT(
      test::error_of<UsageError>([&] { (void)parse_run("[model]\nlayers = 12\n", "run.toml", preset); }),
      HasSubstr("model.layers is 12, not 6"));
  EXPECT_THAT(
      test::error_of<UsageError>([&] { (void)parse_run("[model]\nname = \"gpt\"\n", "run.toml", preset); }),
      HasSubstr("model.name is gpt, not llama"));
}

TEST(ParseRun, LetsHeadsOfAPresetBeChanged) {
  const RunSpec run = parse_run("[model]\npreset = \"gpt2-124m\"\nheads = 6\n", "run.toml");
  EXPECT_EQ(run.model.kv_heads, 6);
  EXPECT_EQ(run.model.head_width, 128);
  const RunSpec wide = parse_run("[model]\npreset = \"llama3-8b\"\nwidth = 256\n", "run.toml");
  EXPECT_EQ(wide.model.kv_heads, 8);
  EXPECT_EQ(wide.model.head_width, 8);
}

TEST(ParseRun, SomeNumbersCanBeAuto) {
  EXPECT_EQ(parse_run("[checkpoint]\ninterval = \"auto\"\n", "run.toml").checkpoint.interval, -1);
  EXPECT_EQ(parse_run("", "run.toml", std::vector<std::string>{"--checkpoint.interval", "auto"})
                .checkpoint.interval,
            -1);
  EXPECT_EQ(error_of("[checkpoint]\ninterval = \"often\"\n"),
            "run.toml:2: checkpoint.interval must be a whole number or \"auto\", not a text");
  EXPECT_EQ(error_of("[checkpoint]\ninterval = -2\n"),
            "run.toml:2: checkpoint.interval must be -1 or more, or \"auto\", not -2");
  EXPECT_EQ(error_of("[checkpoint]\nkeep_last = \"auto\"\n"),
            "run.toml:2: checkpoint.keep_last must be a whole number, not a text");
}

TEST(ParseRun, ReadsBackWhatItWrites) {
  std::vector<std::string> texts = {std::string(kWhole),
                                    "",
                                    "[model]\npreset = \"llama3-405b\"",
                                    "[optimizer]\nname = \"sgd\"\nmomentum = 0.30000000000000004",
                                    "[job]\ndescription = \"\\\"quoted\\\" \\\\ and \\n\\u007F \\u00e9\"",
                                    "[parallelism]\nlane_weights = [1, 0.5, 2e-300]"};
  for (const std::string& text : texts) {
    const RunSpec run = parse_run(text, "run.toml");
    EXPECT_EQ(parse_run(to_toml(run), "resolved.toml"), run) << to_toml(run);
  }
}

TEST(ParseRun, NamesFileLineAndTheNearestKey) {
  EXPECT_EQ(error_of("[training]\nseed = 1\nstpes = 3\n"),
            "run.toml:3: there is no key 'training.stpes'; did you mean 'training.steps'?");
  EXPECT_EQ(
      error_of("[model]\nmicro_batch_size = 3\n"),
      "run.toml:2: there is no key 'model.micro_batch_size'; did you mean 'training.micro_batch_size'?");
  EXPECT_THAT(
      error_of("[data]\nfolders = 3"),
      HasSubstr("there is no key 'data.folders'; those of [data] are train, validation, tokenizer, "));
  EXPECT_EQ(error_of("[trainig]\nsteps = 3\n"),
            "run.toml:1: there is no section [trainig]; did you mean [training]?");
  EXPECT_THAT(error_of("[zzz]\n"),
              StartsWith("run.toml:1: there is no section [zzz]; the sections are [job]"));
  EXPECT_THAT(error_of("steps = 3"), StartsWith("run.toml:1: 'steps' stands outside of a section"));
}

TEST(ParseRun, RefusesWrongTypes) {
  EXPECT_EQ(error_of("[training]\nsteps = \"3\""),
            "run.toml:2: training.steps must be a whole number, not a text");
  EXPECT_EQ(error_of("[training]\nsteps = 3.0"),
            "run.toml:2: training.steps must be a whole number, not a floating-point number");
  EXPECT_EQ(error_of("[comm]\nexact = 1"),
            "run.toml:2: comm.exact must be true or false, not a whole number");
  EXPECT_THAT(error_of("[job]\ndump_folder = 2024-01-01"), HasSubstr("a text, not a date or time"));
  EXPECT_THAT(error_of("[data]\ntrain = [{ path = \"a\", weight = true }]"),
              HasSubstr("one with other elements"));
  EXPECT_THAT(error_of("[data]\ntrain = \"a\""), HasSubstr("not a text"));
  EXPECT_THAT(error_of("[parallelism]\nlane_weights = [1, true]"), HasSubstr("a list of numbers"));
}

TEST(ParseSavedRun, MayHaveKeysWithoutEffect) {
  const std::string text = "[training]\ndtype = \"fp16\"\nloss_scale = 8.0\nloss_scale_window = 10\n";
  EXPECT_THROW(parse_run(text, "manifest.json"), UsageError);
  EXPECT_EQ(parse_saved_run(text, "manifest.json").training.loss_scale_window, 10);
  const std::string many =
      "[model]\nname = \"mlp\"\nheads = 3\nkv_heads = 5\n[lr_scheduler]\ndecay_type = \"constant\"\n"
      "min_lr_factor = 0.2\n[checkpoint]\nenabled = false\nkeep_last = 3\nmtbf_seconds = 60.0\n[elastic]\n"
      "enabled = false\nmax_restarts = 3\nmin_workers = 5\nmax_workers = 3\n[optimizer]\nmomentum = 0.5\n";
  EXPECT_THROW(parse_run(many, "manifest.json"), UsageError);
  EXPECT_EQ(parse_saved_run(many, "manifest.json").elastic.max_restarts, 3);
  EXPECT_THROW(parse_saved_run("[model]\nwidth = 32\nheads = 3\n", "manifest.json"), UsageError)
      << "no such model";
}

TEST(ParseRun, NamesTheKeysOfACorpus) {
  EXPECT_EQ(error_of("[data]\ntrain = [\"a\", { path = \"b\", wieght = 2 }]"),
            "run.toml:2: data.train has a corpus with the key 'wieght': did you mean 'weight'?");
  EXPECT_EQ(error_of("[data]\nvalidation = [{ path = \"b\", split = 2 }]"),
            "run.toml:2: data.validation has a corpus with the key 'split': expected one of path, weight");
  EXPECT_EQ(error_of("[data]\ntrain = [{ weight = 2 }]"),
            "run.toml:2: data.train has a corpus without a path");
}

TEST(ParseRun, RefusesValuesOutOfRange) {
  EXPECT_EQ(error_of("[training]\nsteps = 0"), "run.toml:2: training.steps must be 1 or more, not 0");
  EXPECT_EQ(error_of("[optimizer]\nbeta1 = 1"), "run.toml:2: optimizer.beta1 must be 0 to below 1, not 1");
  EXPECT_EQ(error_of("[validation]\nsteps = 4294967296"),
            "run.toml:2: validation.steps must be 1 to 1073741824, not 4294967296");
  EXPECT_THAT(error_of("[optimizer]\nlr = nan"), HasSubstr("optimizer.lr must be 0 to 1000, not nan"));
  EXPECT_THAT(error_of("[optimizer]\nlr = inf"), HasSubstr("not inf"));
  EXPECT_THAT(error_of("[data]\ntrain = [{ path = \"a\", weight = 0 }]"),
              HasSubstr("data.train must have weights above 0 to 1000000000, not 0"));
  EXPECT_THAT(error_of("[data]\nvalidation = [\"a\", \"\"]"),
              HasSubstr("data.validation has an empty path: name the corpus, or leave it out"));
  EXPECT_EQ(error_of("[optimizer]\nname = \"adam\""),
            "run.toml:2: optimizer.name must be one of adamw, sgd, not 'adam'; did you mean 'adamw'?");
  EXPECT_THAT(error_of("[model]\npreset = \"gpt2-124\""), HasSubstr("did you mean 'gpt2-124m'?"));
}

// A beta of 1 divides by zero, a dropout of 1 keeps nothing, and an epsilon of 0 does not help a zero.
TEST(ParseRun, RefusesWhatFp32RoundsOutOfRange) {
  EXPECT_EQ(error_of("[optimizer]\nbeta2 = 0.99999999"),
            "run.toml:2: optimizer.beta2 must be 0 to below 1, not 0.99999999, which is 1 in fp32");
  EXPECT_THAT(error_of("[optimizer]\nbeta1 = 0.99999999"), HasSubstr("which is 1 in fp32"));
  EXPECT_THAT(error_of("[optimizer]\nname = \"sgd\"\nmomentum = 0.99999999"),
              HasSubstr("which is 1 in fp32"));
  EXPECT_EQ(error_of("[model]\ndropout = 0.99999999"),
            "run.toml:2: model.dropout must be 0 to below 1, not 0.99999999, which is 1 in fp32");
  EXPECT_EQ(error_of("[optimizer]\neps = 1e-50"),
            "run.toml:2: optimizer.eps must be above 0 to 1, not 1e-50, which is 0 in fp32");
  EXPECT_EQ(parse_run("[optimizer]\nbeta2 = 0.9999999", "run.toml").optimizer.beta2, 0.9999999);
  EXPECT_EQ(parse_run("[model]\ndropout = 0.0", "run.toml").model.dropout, 0.0);
}

TEST(ParseRun, RefusesWhatIsNotToml) {
  EXPECT_THAT(error_of("[training]\nsteps = \n"), StartsWith("run.toml:2: not valid TOML: "));
  EXPECT_THAT(error_of("[training]\nsteps = 1\nsteps = 2\n"), StartsWith("run.toml:3: not valid TOML: "));
  EXPECT_THAT(error_of("[job]\ndescription = \"\xff\""), StartsWith("run.toml:2: not valid TOML: "));
  EXPECT_THAT(error_of(std::string(100'000, '[')), StartsWith("run.toml:1: not valid TOML: "));
}

TEST(LoadRun, TheExampleIsARunOfTwoWorkers) {
  const RunSpec run = load_run(LOCKSTEP_EXAMPLES "/kjv/run.toml");
  EXPECT_EQ(workload_of(run, 2).lanes, 2);
  EXPECT_EQ(load_run(LOCKSTEP_EXAMPLES "/mlp/run.toml").model.name, ModelFamily::mlp);
}

TEST(LoadRun, RefusesFilesThatCannotBeRead) {
  EXPECT_EQ(test::error_of<UsageError>([] { load_run("/nowhere/run.toml"); }),
            "/nowhere/run.toml: cannot read the run file: No such file or directory");
  EXPECT_EQ(test::error_of<UsageError>([] { load_run("/proc"); }),
            "/proc: cannot read the run file: Is a directory");
  EXPECT_EQ(test::error_of<UsageError>([] { load_run("/dev/zero"); }),
            "/dev/zero: a run file has at most 1 MiB");
}

}  // namespace
}  // namespace lockstep::spec
