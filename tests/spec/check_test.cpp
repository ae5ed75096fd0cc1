// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/write.h"

#include "tests/support/error_of.h"

namespace lockstep::spec {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  return test::error_of<UsageError>([&] { parse_run(text, "run.toml"); });
}

TEST(CheckRun, RefusesKeysWithoutEffect) {
  EXPECT_EQ(error_of("[optimizer]\nmomentum = 0.5"),
            "run.toml:2: optimizer.momentum = 0.5 has no effect with optimizer.name = \"adamw\": set the "
            "latter to \"sgd\", or leave the former at 0.9");
  EXPECT_THAT(error_of("[training]\nloss_scale = 8.0"), HasSubstr("set the latter to \"fp16\""));
  EXPECT_THAT(error_of("[model]\nname = \"gpt\"\nrope_theta = 5.0"),
              HasSubstr("run.toml:3: model.rope_theta"));
  EXPECT_THAT(error_of("[model]\nname = \"gpt\"\nrope_scaling = \"llama3\""),
              HasSubstr("run.toml:3: model.rope_scaling"));
  EXPECT_THAT(error_of("[model]\nrope_factor = 32.0"),
              HasSubstr("no effect with model.rope_scaling = \"none\": set the latter to \"llama3\""));
  EXPECT_THAT(error_of("[lr_scheduler]\ndecay_type = \"constant\"\ndecay_ratio = 0.5"),
              HasSubstr("run.toml:3: lr_scheduler.decay_ratio"));
  EXPECT_EQ(
      error_of("[lr_scheduler]\ndecay_type = \"constant\"\nmin_lr_factor = 0.2"),
      "run.toml:3: lr_scheduler.min_lr_factor = 0.2 has no effect with lr_scheduler.decay_type = "
      "\"constant\": set the latter to \"linear\" or \"cosine\" or \"wsd\", or leave the former at 0.1");
  EXPECT_EQ(
      error_of("[parallelism]\nzero_stage = 0\nzero_scope = \"host\""),
      "run.toml:3: parallelism.zero_scope = \"host\" has no effect with parallelism.zero_stage = 0: set "
      "the latter to 1 or more, or leave the former at \"world\"");
}

TEST(CheckRun, AnMlpHasNoHeads) {
  const std::string mlp = "[model]\nname = \"mlp\"\n";
  EXPECT_EQ(
      error_of(mlp + "kv_heads = 2"),
      "run.toml:3: model.kv_heads = 2 has no effect with model.name = \"mlp\": set the latter to \"gpt\" "
      "or \"llama\", or leave the former at 0");
  for (const char* key : {"heads = 3", "head_width = 8", "ffn_width = 32", "norm_eps = 1e-6",
                          "tied_embeddings = false", "rope_theta = 5.0"}) {
    EXPECT_THAT(error_of(mlp + key), HasSubstr("has no effect with model.name = \"mlp\"")) << key;
  }
  EXPECT_THAT(error_of(mlp + "[data]\ntokenizer = \"t.json\""),
              HasSubstr("data.tokenizer = \"t.json\" has no effect with model.name = \"mlp\""));
}

// Whoever says what they would be anyway has not said anything.
TEST(CheckRun, AcceptsWhatFollowsFromOtherKeys) {
  const RunSpec mlp = parse_run("[model]\nname = \"mlp\"\nwidth = 100", "run.toml");
  EXPECT_EQ(parse_run(to_toml(mlp), "resolved.toml"), mlp);
  EXPECT_EQ(error_of("[model]\npreset = \"llama3-8b\"\nname = \"mlp\""),
            "run.toml:3: model.name contradicts model.preset = \"llama3-8b\"; leave it out");
}

TEST(CheckRun, ElasticKeysNeedElasticTraining) {
  EXPECT_EQ(error_of("[elastic]\nenabled = false\nmax_restarts = 3"),
            "run.toml:3: elastic.max_restarts = 3 has no effect with elastic.enabled = false: set the latter "
            "to true, or leave the former at 10");
  EXPECT_EQ(error_of("[elastic]\nstraggler_freq = 0\nevict_stragglers = true"),
            "run.toml:3: elastic.evict_stragglers = true has no effect with elastic.straggler_freq = 0: set "
            "the latter to 1 or more, or leave the former at false");
  EXPECT_NO_THROW(
      parse_run("[elastic]\nenabled = false\nstraggler_factor = 3\ngrace_seconds = 5", "run.toml"))
      << "they are for all workers";
}

TEST(CheckRun, ARunHasNoMoreWorkersThanItMayHave) {
  EXPECT_EQ(
      error_of("[elastic]\nmin_workers = 5\nmax_workers = 3"),
      "run.toml:2: elastic.min_workers = 5 is more than elastic.max_workers = 3; lower the one or raise "
      "the other");
  EXPECT_NO_THROW(parse_run("[elastic]\nmin_workers = 3\nmax_workers = 3", "run.toml"));
  EXPECT_NO_THROW(parse_run("[elastic]\nmin_workers = 5", "run.toml"));
}

TEST(CheckRun, AcceptsThemWhereTheyHaveOne) {
  EXPECT_NO_THROW(parse_run("[optimizer]\nname = \"sgd\"\nmomentum = 0.5", "run.toml"));
  EXPECT_NO_THROW(parse_run("[training]\ndtype = \"fp16\"\nloss_scale = 8.0", "run.toml"));
  EXPECT_NO_THROW(parse_run("[comm]\nexact = false\nall_reduce = \"ring\"", "run.toml"));
}

TEST(CheckRun, AScheduleHasAPipeline) {
  EXPECT_EQ(error_of("[parallelism]\nschedule = \"zbv\""),
            "run.toml:2: parallelism.schedule = \"zbv\" has no effect with parallelism.pipeline = 1: set the "
            "latter to 2 or more, or leave the former at \"1f1b\"");
  EXPECT_THAT(error_of("[parallelism]\nvirtual_stages = 2"),
              HasSubstr("parallelism.virtual_stages = 2 has no effect with parallelism.pipeline = 1"));
  EXPECT_THAT(error_of("[parallelism]\npart_blocks = [4, 4]"), HasSubstr("parallelism.pipeline = 1"));
  EXPECT_EQ(error_of("[parallelism]\npipeline = 2\nschedule = \"a.csv\"\nvirtual_stages = 2"),
            "run.toml:4: parallelism.virtual_stages = 2 has no effect with parallelism.schedule = \"a.csv\", "
            "a file "
            "that says how many there are: leave it out");
  for (const char* pipeline : {"2", "-1"}) {
    EXPECT_NO_THROW(parse_run("[parallelism]\nschedule = \"interleaved\"\nvirtual_stages = 2", "run.toml",
                              std::vector<std::string>{"--parallelism.pipeline", pipeline}));
  }
}

TEST(CheckRun, ALossScaleIsFixedOrAdapted) {
  const std::string fixed = "[training]\ndtype = \"fp16\"\nloss_scale = 8.0\n";
  EXPECT_EQ(error_of(fixed + "initial_loss_scale = 1024.0"),
            "run.toml:4: training.initial_loss_scale = 1024.0 has no effect with training.loss_scale = 8.0: "
            "set the latter to 0.0, or leave the former at 65536.0");
  EXPECT_THAT(error_of(fixed + "loss_scale_window = 10"), HasSubstr("training.loss_scale_window = 10"));
  EXPECT_THAT(error_of(fixed + "min_loss_scale = 2.0"), HasSubstr("training.min_loss_scale = 2.0"));
}

TEST(CheckRun, CheckpointsThatAreDueOrKeptAreMade) {
  EXPECT_EQ(error_of("[checkpoint]\nenabled = false\ninterval = 10"),
            "run.toml:3: checkpoint.interval = 10 has no effect with checkpoint.enabled = false: set the "
            "latter to true, or leave the former at 0");
  EXPECT_THAT(error_of("[checkpoint]\nenabled = false\ninterval = \"auto\""),
              HasSubstr("checkpoint.interval = \"auto\" has no effect"));
  EXPECT_THAT(error_of("[checkpoint]\nenabled = false\ninterval_seconds = 60"),
              HasSubstr("checkpoint.interval_seconds"));
  for (const char* key : {"keep_last = 3", "keep_every = 10", "max_failures = 1"}) {
    EXPECT_THAT(error_of("[checkpoint]\nenabled = false\n" + std::string(key)),
                HasSubstr("no effect with checkpoint.enabled = false: set the latter to true"));
  }
}

TEST(CheckRun, FailuresMatterToCheckpointsThatComeAsOftenAsPays) {
  EXPECT_EQ(error_of("[checkpoint]\nmtbf_seconds = 60"),
            "run.toml:2: checkpoint.mtbf_seconds = 60.0 has no effect with checkpoint.interval = 0: set the "
            "latter to \"auto\", or leave the former at 10800.0");
  EXPECT_NO_THROW(parse_run("[checkpoint]\ninterval = \"auto\"\nmtbf_seconds = 60", "run.toml"));
  EXPECT_NO_THROW(parse_run("[checkpoint]\ninterval = -1\nmtbf_seconds = 60", "run.toml"));
}

TEST(CheckRun, ARunGoesOnFromWhatItSaves) {
  EXPECT_EQ(error_of("[checkpoint]\nenabled = false\nresume = \"auto\""),
            "run.toml:3: checkpoint.resume = \"auto\" goes on from what the run itself saves, and "
            "checkpoint.enabled = false saves nothing: set the latter to true, or name a checkpoint with "
            "--resume PATH");
  EXPECT_NO_THROW(parse_run("[checkpoint]\nenabled = false\nresume = \"runs/a\"", "run.toml"));
}

TEST(CheckRun, ARunIsResumedOrBegun) {
  EXPECT_EQ(
      error_of("[checkpoint]\nresume = \"runs/a\"\ninitial_load_path = \"runs/b\""),
      "run.toml:2: checkpoint.resume = \"runs/a\" (--resume) goes on with a run, and "
      "checkpoint.initial_load_path = \"runs/b\" (--init-from) begins one: leave one of the two out, or "
      "unset it with --checkpoint.resume= or --checkpoint.initial_load_path=");
  EXPECT_NO_THROW(parse_run("[checkpoint]\nresume = \"auto\"\ninitial_load_path = \"runs/b\"", "run.toml"));
}

TEST(CheckRun, AFlagSaysWhetherARunIsResumedOrBegun) {
  const std::string resume = "--checkpoint.resume=runs/a";
  const std::string begin = "--checkpoint.initial_load_path=runs/b";
  const auto checkpoint_of = [](const std::string& file, const std::vector<std::string>& flags) {
    return parse_run("[checkpoint]\n" + file, "run.toml", flags).checkpoint;
  };
  const Checkpoint resumed = checkpoint_of("initial_load_path = \"runs/c\"", {resume});
  EXPECT_EQ(resumed.resume, "runs/a");
  EXPECT_EQ(resumed.initial_load_path, "");
  const Checkpoint begun = checkpoint_of("resume = \"runs/c\"", {begin});
  EXPECT_EQ(begun.resume, "");
  EXPECT_EQ(begun.initial_load_path, "runs/b");
  const Checkpoint either = checkpoint_of("initial_load_path = \"runs/c\"", {"--checkpoint.resume=auto"});
  EXPECT_EQ(either.initial_load_path, "runs/c");

  EXPECT_THROW(checkpoint_of("", {resume, begin}), UsageError);
  const std::string both = "resume = \"runs/a\"\ninitial_load_path = \"runs/b\"";
  EXPECT_EQ(checkpoint_of(both, {"--checkpoint.resume="}).initial_load_path, "runs/b");
  EXPECT_EQ(checkpoint_of(both, {"--checkpoint.initial_load_path="}).resume, "runs/a");
}

// A resolved configuration names every key.
TEST(CheckRun, AcceptsDefaultsThatAreGiven) {
  const std::string defaults = to_toml(parse_run("", "run.toml"));
  for (const std::vector<std::string>& flags : {std::vector<std::string>{},
                                                {"--checkpoint.enabled", "false"},
                                                {"--elastic.enabled", "false"},
                                                {"--elastic.straggler_freq", "0"},
                                                {"--metrics.enable_tensorboard", "false"},
                                                {"--lr_scheduler.decay_type", "constant"},
                                                {"--optimizer.name", "sgd"},
                                                {"--parallelism.zero_stage", "0"},
                                                {"--training.dtype", "fp16", "--training.loss_scale", "8"}}) {
    EXPECT_NO_THROW(parse_run(defaults, "resolved.toml", flags));
  }
}

TEST(CheckRun, RefusesModelsThatCannotBeBuilt) {
  EXPECT_EQ(error_of("[model]\nname = \"gpt\"\npreset = \"llama-tiny\""),
            "run.toml:2: model.name contradicts model.preset = \"llama-tiny\"; leave it out");
  EXPECT_THAT(error_of("[model]\nkv_heads = 4"),
              HasSubstr("model.kv_heads = 4 does not divide model.heads = 6"));
  EXPECT_THAT(error_of("[model]\nname = \"gpt\"\nkv_heads = 3"), HasSubstr("must equal model.heads = 6"));
  EXPECT_THAT(error_of("[model]\nhead_width = 5"), HasSubstr("must be even"));
  EXPECT_THAT(error_of("[model]\nrope_scaling = \"yarn\""), HasSubstr("one of none, llama3"));
  EXPECT_EQ(error_of("[model]\nrope_scaling = \"llama3\"\nrope_high_freq_factor = 1.0"),
            "run.toml:3: model.rope_low_freq_factor = 1 must be below model.rope_high_freq_factor = 1");
  EXPECT_THAT(error_of("[model]\nwidth = 100\nheads = 3"),
              HasSubstr("model.width = 100 is not a multiple of model.heads = 3"));
  EXPECT_NO_THROW(parse_run("[model]\nwidth = 100\nheads = 3\nhead_width = 32", "run.toml"));
  EXPECT_NO_THROW(parse_run("[model]\nname = \"mlp\"\nwidth = 100", "run.toml"));
}

TEST(CheckRun, ComparesLengths) {
  EXPECT_EQ(error_of("[model]\npreset = \"gpt2-124m\"\n[training]\nseq_len = 2048"),
            "run.toml:4: training.seq_len = 2048 is longer than model.max_seq_len = 1024");
  EXPECT_THAT(error_of("[model]\nname = \"mlp\"\nmax_seq_len = 300"), HasSubstr("must be equal"));
}

TEST(CheckRun, KeepsARunInItsFolder) {
  for (const char* folder : {"/tmp/tb", "../tb", "a/../../b"}) {
    EXPECT_THAT(error_of("[metrics]\nsave_tb_folder = \"" + std::string(folder) + "\""),
                HasSubstr("is outside of job.dump_folder"));
  }
  EXPECT_NO_THROW(parse_run("[metrics]\nsave_tb_folder = \"a/b\"", "run.toml"));
}

TEST(CheckRun, ARunHasAFolder) {
  EXPECT_EQ(error_of("[job]\ndump_folder = \"\""),
            "run.toml:2: job.dump_folder is empty: name the folder of the run");
}

TEST(CheckRun, ComparesTrainingKeys) {
  EXPECT_THAT(
      error_of("[training]\nsteps = 10\n[lr_scheduler]\nwarmup_steps = 11"),
      HasSubstr(
          "run.toml:4: lr_scheduler.warmup_steps = 11 is more than training.steps = 10; lower the one"));
  EXPECT_THAT(error_of("[training]\ndtype = \"fp16\"\nmin_loss_scale = 1e6"), HasSubstr("run.toml:3"));
  EXPECT_THAT(error_of("[training]\nglobal_batch_size = 30"),
              HasSubstr("run.toml:2: training.global_batch_size = 30 must be a multiple"));
  EXPECT_THAT(error_of("[training]\nglobal_batch_size = 48\n[parallelism]\nlanes = 4"),
              HasSubstr("32 or 64"));
}

TEST(CheckRun, AValidationHasACorpusAndAFrequency) {
  EXPECT_EQ(
      error_of("[validation]\nfreq = 100"),
      "run.toml:2: validation.freq = 100 has nothing to validate on; name a corpus in data.validation, or "
      "leave it out");
  EXPECT_EQ(
      error_of("[data]\nvalidation = [\"corpus\"]"),
      "run.toml:2: data.validation has no effect without validation.freq: set that to the steps between "
      "validation losses, such as 100, or to 0 for none");
  EXPECT_EQ(
      error_of("[validation]\nsteps = 5"),
      "run.toml:2: validation.steps has no effect without validation.freq: set that to the steps between "
      "validation losses, such as 100, or to 0 for none");
  EXPECT_NO_THROW(parse_run("[validation]\nfreq = 0\nsteps = 5", "run.toml"));
  EXPECT_NO_THROW(parse_run("[data]\nvalidation = [\"corpus\"]\n[validation]\nfreq = 100", "run.toml"));
  EXPECT_NO_THROW(parse_run("[data]\nvalidation = [\"corpus\"]\n[validation]\nfreq = 0", "run.toml"));
  EXPECT_NO_THROW(parse_run("[data]\nvalidation = []\n[validation]\nfreq = 0", "run.toml"));
}

TEST(CheckRun, ComparesKeysOfTheLayout) {
  EXPECT_EQ(error_of("[parallelism]\nlanes = 6"),
            "run.toml:2: parallelism.lanes = 6 must be a power of two, such as 4 or 8");
  EXPECT_EQ(error_of("[parallelism]\ntensor_lanes = 3"),
            "run.toml:2: parallelism.tensor_lanes = 3 must be a power of two, such as 2 or 4");
  EXPECT_THAT(error_of("[parallelism]\ndata = 0"), HasSubstr("must be -1, or 1 or more"));
  EXPECT_THAT(error_of("[parallelism]\nlane_weights = [0, 0]"), HasSubstr("above 0"));
  EXPECT_THAT(error_of("[parallelism]\nrecompute = \"sometimes\""), HasSubstr("none, all, or a number"));
  EXPECT_THAT(error_of("[comm]\nall_reduce = \"ring\""), HasSubstr("run.toml:2: comm.all_reduce = \"ring\""));
  EXPECT_EQ(error_of("[parallelism]\ntensor = 2\n[comm]\nexact = false"),
            "run.toml:4: comm.exact = false cannot be with parallelism.tensor_lanes = 2: the copies of a "
            "parameter that tensor lanes share would drift apart; leave it out");
  EXPECT_EQ(
      error_of("[parallelism]\nsequence_parallel = true"),
      "run.toml:2: parallelism.sequence_parallel shares out tokens among workers that share layers; set "
      "parallelism.tensor to 2 or more, or leave it out");
  EXPECT_NO_THROW(parse_run("[parallelism]\nsequence_parallel = true\ntensor_lanes = 4", "run.toml",
                            std::vector<std::string>{"--data.train", "corpus"}));
}

TEST(FillModel, DoesNothingTheSecondTime) {
  RunSpec once;
  fill_model(once);
  RunSpec twice = once;
  fill_model(twice);
  EXPECT_EQ(once, twice);
}

}  // namespace
}  // namespace lockstep::spec
