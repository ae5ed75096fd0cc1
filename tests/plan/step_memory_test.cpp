// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/step_memory.h"

#include <gtest/gtest.h>

#include "lockstep/plan/block_memory.h"
#include "lockstep/spec/load.h"

namespace lockstep::plan {
namespace {

constexpr std::uint64_t kParameters = 124'439'808;

spec::RunSpec run_of(const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--data.train", "corpus"};
  all.insert(all.end(), flags.begin(), flags.end());
  return spec::parse_run(R"(
      [model]
      preset = "gpt2-124m"
      [training]
      seq_len = 512
      micro_batch_size = 2
      global_batch_size = 4
      dtype = "bf16"
      [parallelism]
      lanes = 2)",
                         "run.toml", all);
}

TEST(StepMemory, OfTheStateFollowsTheFormulas) {
  const StepMemory alone = step_memory(run_of({"--parallelism.lanes", "1"}), 1, 0);
  EXPECT_EQ(alone.weights, 2 * kParameters);
  EXPECT_EQ(alone.optimizer, 10 * kParameters);
  EXPECT_EQ(alone.gradients, 4 * kParameters);
  const StepMemory shared = step_memory(run_of({}), 2, 1);
  EXPECT_EQ(shared.optimizer, 5 * kParameters);
  EXPECT_EQ(step_memory(run_of({"--parallelism.zero_stage", "0"}), 2, 1).optimizer, 10 * kParameters);
  EXPECT_EQ(step_memory(run_of({"--optimizer.name", "sgd"}), 2, 0).optimizer, 3 * kParameters);
  EXPECT_EQ(step_memory(run_of({"--training.dtype", "fp16"}), 2, 1).optimizer, 6 * kParameters);
  const StepMemory wide = step_memory(run_of({"--training.dtype", "fp32"}), 2, 0);
  EXPECT_EQ(wide.weights, 4 * kParameters);
  EXPECT_EQ(wide.optimizer, 4 * kParameters) << "the weights are the values in fp32";
}

TEST(StepMemory, OfACheckpointIsThatOfWhatARankWrites) {
  EXPECT_EQ(step_memory(run_of({}), 2, 1).checkpoint, 0U) << "at the end nothing is copied";
  for (const char* stage : {"0", "1", "3"}) {
    const auto run = run_of({"--checkpoint.interval", "10", "--parallelism.zero_stage", stage});
    EXPECT_EQ(step_memory(run, 2, 1).checkpoint, 6 * kParameters);
  }
  const auto sgd = run_of({"--checkpoint.interval_seconds", "60", "--optimizer.name", "sgd"});
  EXPECT_EQ(step_memory(sgd, 2, 1).checkpoint, 4 * kParameters);
  auto off = run_of({"--checkpoint.interval", "10"});
  off.checkpoint.enabled = false;
  EXPECT_EQ(step_memory(off, 2, 1).checkpoint, 0U);
}

TEST(StepMemory, OfWhatIsSharedOutIsAShare) {
  constexpr std::uint64_t kHalf = kParameters / 2;
  const StepMemory gradients = step_memory(run_of({"--parallelism.zero_stage", "2"}), 2, 1);
  EXPECT_EQ(gradients.weights, 2 * kParameters);
  EXPECT_EQ(gradients.gradients, 4 * kHalf);
  EXPECT_EQ(gradients.optimizer, 10 * kHalf);
  const StepMemory all = step_memory(run_of({"--parallelism.zero_stage", "3"}), 2, 1);
  EXPECT_EQ(all.weights + all.gradients + all.optimizer, 16 * kHalf);
  // What comes and goes: the table with its gradient, and a layer or two.
  constexpr std::uint64_t kTable = (50257 + 1024) * 768;
  constexpr std::uint64_t kLayer = 7'087'872;
  const std::uint64_t plain = step_memory(run_of({}), 2, 1).activations;
  EXPECT_GT(all.activations, plain + 4 * kTable);
  EXPECT_LT(all.activations, plain + 6 * kTable + 3 * 6 * kLayer);
  EXPECT_EQ(step_memory(run_of({"--parallelism.zero_stage", "3"}), 1, 0).optimizer, 10 * kParameters)
      << "there is nobody to share with";
}

TEST(StepMemory, WithACopyOnEveryHostFollowsTheWorkersOfAHost) {
  const std::vector<int> two_hosts = {0, 0, 1, 1};
  const auto memory_of = [&](const std::string& stage, const std::string& scope) {
    return step_memory(run_of({"--parallelism.zero_stage", stage, "--parallelism.zero_scope", scope,
                               "--parallelism.lanes", "4", "--training.micro_batch_size", "1"}),
                       4, 3, two_hosts);
  };
  const auto state = [](const StepMemory& memory) {
    return memory.weights + memory.gradients + memory.optimizer;
  };
  EXPECT_EQ(state(memory_of("3", "world")), 4 * kParameters);
  EXPECT_EQ(state(memory_of("1", "host")), (6 + 10 / 2) * kParameters);
  EXPECT_EQ(state(memory_of("2", "host")), (2 + 14 / 2) * kParameters);
  EXPECT_EQ(state(memory_of("3", "host")), 16 / 2 * kParameters);
  EXPECT_EQ(memory_of("3", "host").activations, memory_of("3", "world").activations);
  const std::vector<int> four_hosts = {0, 1, 2, 3};
  EXPECT_EQ(state(step_memory(run_of({"--parallelism.zero_stage", "3", "--parallelism.zero_scope", "host",
                                      "--parallelism.lanes", "4", "--training.micro_batch_size", "1"}),
                              4, 3, four_hosts)),
            16 * kParameters)
      << "there is nobody to share with";
}

TEST(MirrorMemory, IsThatOfTheSharesAndTheirGradients) {
  const auto memory_of = [](const std::vector<std::string>& flags, Rank rank,
                            const std::vector<int>& host_of = {0, 0, 1, 1}) {
    std::vector<std::string> all = {"--parallelism.lanes", "4", "--training.micro_batch_size", "1"};
    all.insert(all.end(), flags.begin(), flags.end());
    return mirror_memory(run_of(all), 4, rank, host_of);
  };
  constexpr std::uint64_t kShare = kParameters / 4;
  EXPECT_EQ(memory_of({}, 1), 16 * kShare);
  EXPECT_EQ(memory_of({"--parallelism.zero_stage", "3"}, 2), 16 * kShare);
  EXPECT_EQ(memory_of({"--optimizer.name", "sgd"}, 1), 12 * kShare);
  const std::vector<int> uneven = {0, 0, 0, 1};
  EXPECT_EQ(memory_of({}, 3, uneven), 3 * 16 * kShare) << "it has those of all others";
  EXPECT_EQ(memory_of({}, 0, uneven), 16 * kShare);
  EXPECT_EQ(memory_of({}, 1, uneven), 0U);
}

TEST(MirrorMemory, IsNoneOnOneHost) {
  const auto run = run_of({"--parallelism.lanes", "4", "--training.micro_batch_size", "1"});
  EXPECT_EQ(mirror_memory(run, 4, 1), 0U);
  EXPECT_EQ(mirror_memory(run, 4, 1, std::vector<int>{2, 2, 2, 2}), 0U);
}

TEST(MirrorMemory, IsNoneWhereADiskHasTheState) {
  const std::vector<std::string> flags = {"--parallelism.zero_stage", "2", "--parallelism.lanes", "2"};
  std::vector<std::string> on_disk = flags;
  on_disk.insert(on_disk.end(), {"--zero.offload", "disk"});
  const std::vector<int> host_of = {0, 1};
  EXPECT_GT(mirror_memory(run_of(flags), 2, 0, host_of), 0U);
  EXPECT_EQ(mirror_memory(run_of(on_disk), 2, 0, host_of), 0U);
}

TEST(MirrorMemory, IsNoneWhereNothingIsSharedOutOrHostsHaveCopies) {
  const std::vector<int> host_of = {0, 1};
  EXPECT_EQ(mirror_memory(run_of({"--parallelism.zero_stage", "0"}), 2, 0, host_of), 0U);
  EXPECT_EQ(mirror_memory(run_of({"--parallelism.lanes", "1"}), 1, 0), 0U);
  EXPECT_EQ(mirror_memory(run_of({"--parallelism.tensor", "2", "--parallelism.lanes", "1"}), 2, 0, host_of),
            0U);
  const auto on_hosts = run_of(
      {"--parallelism.zero_scope", "host", "--parallelism.lanes", "4", "--training.micro_batch_size", "1"});
  EXPECT_EQ(mirror_memory(on_hosts, 4, 0, std::vector<int>{0, 0, 1, 1}), 0U);
}

TEST(StepMemory, OfLayersThatAreSharedIsAShare) {
  constexpr std::uint64_t kTable = 768 * ((50257 + 1) / 2 + 1024);  // half of the tokens, all places
  constexpr std::uint64_t kLayer = (12 * 768 * 768 + 7 * 768) / 2 + 6 * 768;
  constexpr std::uint64_t kShare = kTable + 12 * kLayer + 2 * 768;
  const StepMemory share =
      step_memory(run_of({"--parallelism.tensor", "2", "--parallelism.lanes", "1"}), 2, 1);
  EXPECT_EQ(share.weights, 2 * kShare);
  EXPECT_EQ(share.gradients, 4 * kShare);
  EXPECT_EQ(share.optimizer, 10 * kShare);
  const auto layer = [](const std::vector<std::string>& flags) { return block_memory(run_of(flags))[1]; };
  const schedule::BlockMemory whole = layer({});
  const schedule::BlockMemory half = layer({"--parallelism.tensor", "2"});
  EXPECT_EQ(half.output, whole.output);
  EXPECT_LT(half.inner, whole.inner);
  const schedule::BlockMemory less =
      layer({"--parallelism.tensor", "2", "--parallelism.sequence_parallel", "true"});
  EXPECT_EQ(less.output, whole.output / 2);
  EXPECT_EQ(half.inner - less.inner, whole.output / 2 + std::uint64_t{512} * 4 * sizeof(float));
}

TEST(StepMemory, OfAnOptimizerOnDiskIsThatOfAFewBuckets) {
  const StepMemory memory = step_memory(run_of({"--zero.offload", "disk"}), 2, 1);
  EXPECT_EQ(memory.optimizer, 5 * (std::uint64_t{2} << 20) * 10);
  EXPECT_EQ(memory.weights, 2 * kParameters);
}

TEST(StepMemory, HasASlotForEverySubtreeThatWaits) {
  const spec::RunSpec run = run_of({});
  EXPECT_EQ(step_memory(run, 2, 0).gradients, 4 * kParameters) << "a lane each";
  EXPECT_EQ(step_memory(run, 1, 0).gradients, 8 * kParameters) << "the first waits for the second";
}

TEST(StepMemory, OfActivationsIsWhatTheBlocksKeep) {
  constexpr std::uint64_t kTokens = 1024;
  constexpr std::uint64_t kOutput = kTokens * 768 * 2;
  constexpr std::uint64_t kInner = kTokens * ((7 * 768 + 2 * 3072) * 2 + (4 + 12) * 4);
  const std::vector<schedule::BlockMemory> blocks = block_memory(run_of({}));
  ASSERT_EQ(blocks.size(), 14U);
  EXPECT_EQ(blocks[1].output, kOutput);
  EXPECT_EQ(blocks[1].inner, kInner);
  const std::uint64_t head = head_memory(run_of({}));
  EXPECT_EQ(head, 512 * 50257 * 4 + kOutput);
  const std::uint64_t kept = 14 * kOutput + 12 * kInner + head;
  const std::uint64_t all = step_memory(run_of({}), 2, 0).activations;
  EXPECT_GT(all, kept);
  EXPECT_LT(all, kept + kInner);
}

TEST(StepMemory, IsLessWhenActivationsAreComputedAgain) {
  const std::uint64_t kept = step_memory(run_of({}), 2, 0).activations;
  const std::uint64_t half = step_memory(run_of({"--parallelism.recompute", "2"}), 2, 0).activations;
  const std::uint64_t none = step_memory(run_of({"--parallelism.recompute", "all"}), 2, 0).activations;
  EXPECT_LT(half, 0.75 * static_cast<double>(kept));
  EXPECT_LT(none, 0.65 * static_cast<double>(half));
}

TEST(StepMemory, OfStagesIsThatOfTheirBlocks) {
  constexpr std::uint64_t kTable = 50257 * 768;
  const spec::RunSpec run = run_of(
      {"--parallelism.pipeline", "2", "--parallelism.lanes", "1", "--training.global_batch_size", "16"});
  const StepMemory first = step_memory(run, 2, 0);
  const StepMemory last = step_memory(run, 2, 1);
  EXPECT_EQ(first.weights + last.weights, 2 * (kParameters + kTable)) << "both have the tied table";
  EXPECT_EQ(first.gradients + last.gradients, 4 * (kParameters + kTable));
  EXPECT_EQ(first.optimizer + last.optimizer, 10 * kParameters) << "which one updates";
  // Micro-batches in flight, of the blocks of each stage.
  const auto live = [&](const char* schedule, Rank stage) {
    spec::RunSpec other = run;
    other.parallelism.schedule = schedule;
    return static_cast<double>(step_memory(other, 2, stage).activations);
  };
  EXPECT_GT(live("gpipe", 0), 3.5 * live("1f1b", 0)) << "8 against 2";
  EXPECT_GT(live("1f1b", 0), 1.8 * live("naive", 0));
  EXPECT_EQ(live("1f1b", 1), live("naive", 1));
  EXPECT_EQ(live("zbh1", 0), live("1f1b", 0)) << "less idle time, the same memory";
}

TEST(StepMemory, OfARankWithoutLanesHasNoActivations) {
  EXPECT_EQ(step_memory(run_of({"--parallelism.lane_weights", "[1,0]"}), 2, 1).activations, 0U);
}

}  // namespace
}  // namespace lockstep::plan
