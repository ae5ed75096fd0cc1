// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/optimizer_state.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/files.h"
#include "tests/train/step_rig.h"

namespace lockstep::train {
namespace {

Partition shares(const std::vector<std::size_t>& sizes) {
  Partition partition;
  std::size_t begin = 0;
  for (const std::size_t size : sizes) {
    partition.own.push_back({begin, begin + size});
    begin += size;
  }
  return partition;
}

class StateOf : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, StateOf, ::testing::Values(DType::fp32, DType::bf16, DType::fp16));

TEST_P(StateOf, IsOnDiskWhatItIsInMemory) {
  const test::TemporaryFolder folder;
  const Partition partition = shares({3000, 1, 0, 70'000, 12, 5000, 64});
  OptimizerState memory(partition, {GetParam(), 2, {}});
  OptimizerState disk(partition, {GetParam(), 2, folder.path().string()});
  BufferPool pool{comm::Communicator()};
  OptimizerState shared(partition, {.dtype = GetParam(), .registered = &pool});
  EXPECT_FALSE(memory.is_on_disk());
  EXPECT_FALSE(shared.is_on_disk());
  EXPECT_TRUE(disk.is_on_disk());
  for (int round = 0; round < 5; ++round) {
    for (std::size_t bucket = 0; bucket < partition.own.size(); ++bucket) {
      if (round % 2 == 1 && bucket + 1 < partition.own.size()) disk.read_ahead(bucket + 1);
      const OpenState ours(memory, bucket);
      const OpenState theirs(disk, bucket);
      const OpenState registered(shared, bucket);
      ASSERT_EQ(theirs.part().lower.size(), GetParam() == DType::bf16 ? partition.own[bucket].size() : 0);
      ASSERT_EQ(theirs.part().master.size(), GetParam() == DType::fp16 ? partition.own[bucket].size() : 0);
      for (std::size_t moment = 0; moment < 2; ++moment) {
        const std::span<float> expected = ours.part().moments[moment];
        const std::span<float> found = theirs.part().moments[moment];
        ASSERT_TRUE(std::ranges::equal(expected, found)) << "round " << round << ", bucket " << bucket;
        const std::span<float> in_place = registered.part().moments[moment];
        ASSERT_TRUE(std::ranges::equal(expected, in_place)) << "round " << round << ", bucket " << bucket;
        for (std::size_t i = 0; i < found.size(); ++i) {
          in_place[i] = static_cast<float>(i * (moment + 1)) + static_cast<float>(round);
          found[i] = expected[i] = static_cast<float>(i * (moment + 1)) + static_cast<float>(round);
        }
      }
    }
  }
}

TEST(OptimizerState, OnDiskDoesNotChangeTheBits) {
  const test::TemporaryFolder folder;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    Setting setting = {.dtype = dtype, .layers = 3};
    const Outcome alone = train(even_ownership(4, 1), setting).front();
    setting.offload_folder = folder.path().string();
    for (const int zero_stage : {0, 1, 3}) {
      setting.zero_stage = zero_stage;
      for (const Outcome& outcome : train(even_ownership(4, 2), setting)) {
        expect_same(outcome, alone, "on disk, ZeRO " + std::to_string(zero_stage));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::train
