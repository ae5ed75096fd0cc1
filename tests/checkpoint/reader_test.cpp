// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/reader.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

#include "tests/checkpoint/cuts.h"
#include "tests/checkpoint/saved.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using test::TemporaryFolder;
using testing::Cut;
using ::testing::ElementsAre;
using testing::full_tensor;
using testing::FullTensor;
using ::testing::HasSubstr;

Cut any_cut_of(const std::vector<FullTensor>& tensors) {
  Cut cut(*rc::gen::inRange<std::size_t>(1, 6));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const Runs& runs : testing::any_cut(tensors[i].logical.shape)) {
      cut[*rc::gen::inRange<std::size_t>(0, cut.size())].push_back({i, runs});
    }
  }
  return cut;
}

// Writes the tensors by a cut of their own; the folder of the checkpoint.
std::string saved(const TemporaryFolder& folder, const std::string& name,
                  const std::vector<FullTensor>& tensors, const Cut& cut, const Manifest& manifest) {
  testing::HastyDisk disk;
  CheckpointStore store(folder.path(name), disk);
  testing::save(store, disk, tensors, cut, manifest);
  return store.committed().front().path;
}

RC_GTEST_PROP(Checkpoint, IsTheSameWhoeverHasCutIt, ()) {
  const TemporaryFolder folder;
  std::vector<FullTensor> tensors;
  for (auto count = *rc::gen::inRange(1, 5); count > 0; --count) {
    tensors.push_back(full_tensor("model." + std::to_string(count), testing::any_shape(), count));
  }
  const Manifest manifest = testing::manifest_of(tensors, 7);
  Checkpoint whole(saved(folder, "whole", tensors, testing::uncut(tensors), manifest));
  Checkpoint cut(saved(folder, "cut", tensors, any_cut_of(tensors), manifest));
  for (const FullTensor& tensor : tensors) {
    for (int trial = 0; trial < 4; ++trial) {
      const auto begin = *rc::gen::inRange<std::size_t>(0, tensor.values.size() + 1);
      const auto end = *rc::gen::inRange<std::size_t>(begin, tensor.values.size() + 1);
      std::vector<float> values(end - begin);
      cut.read(tensor.logical.name, {begin, end}, values);
      RC_ASSERT(std::equal(values.begin(), values.end(), tensor.values.begin() + static_cast<long>(begin)));
    }
    RC_ASSERT(testing::read_all(cut, tensor.logical.name) == tensor.values);
  }
  cut.verify();
  RC_ASSERT(logical_hash(cut) == logical_hash(whole));
}

class ReadCheckpoint : public ::testing::Test {
 protected:
  Hash hash_with(const std::vector<FullTensor>& tensors, const Manifest& manifest) {
    Checkpoint checkpoint(
        saved(folder_, std::to_string(++saved_), tensors, testing::uncut(tensors), manifest));
    return logical_hash(checkpoint);
  }

  TemporaryFolder folder_;
  int saved_ = 0;
  std::vector<FullTensor> tensors_ = {full_tensor("model.a", {2, 3}), full_tensor("model.b", {4})};
  Manifest manifest_ = testing::manifest_of(tensors_, 7);
};

TEST_F(ReadCheckpoint, GivesBackWhatWasSaid) {
  const std::string path = saved(folder_, "s", tensors_, testing::uncut(tensors_), manifest_);
  Checkpoint checkpoint(path);
  EXPECT_EQ(checkpoint.path(), path);
  Manifest found = checkpoint.manifest();
  EXPECT_EQ(found.files.size(), 1U);
  found.files.clear();
  EXPECT_EQ(found, manifest_);
  EXPECT_TRUE(checkpoint.has("model.a"));
  EXPECT_FALSE(checkpoint.has("model.c"));
  EXPECT_THAT(checkpoint.tensor("model.b").shape, ElementsAre(4));
}

// Larger than the blocks in which files are read, and cut where no block ends.
TEST_F(ReadCheckpoint, OfLargeTensors) {
  const std::vector<FullTensor> tensors = {full_tensor("model.a", {1000, 1001})};
  const Cut cut = {{{0, {0, 7, 1001, 1000}}}, {{0, {7, 993, 1001, 1000}}, {0, {1000, 1, 1001, 1000}}}};
  Checkpoint checkpoint(saved(folder_, "s", tensors, cut, testing::manifest_of(tensors, 1)));
  EXPECT_EQ(testing::read_all(checkpoint, "model.a"), tensors[0].values);
  std::vector<float> values(500'000);
  for (const std::size_t begin : {1UL, 262'143UL, 262'144UL, 501'000UL}) {
    checkpoint.read("model.a", {begin, begin + values.size()}, values);
    EXPECT_TRUE(
        std::equal(values.begin(), values.end(), tensors[0].values.begin() + static_cast<long>(begin)));
  }
}

TEST_F(ReadCheckpoint, TheHashIsOfWhatMatters) {
  const Hash hash = hash_with(tensors_, manifest_);
  Manifest same = manifest_;
  same.written_by = "somebody else";
  same.lanes = 8;
  EXPECT_EQ(hash_with(tensors_, same), hash);

  for (auto change : {+[](Progress& progress) { progress.step = 8; },
                      +[](Progress& progress) { progress.data_position = 0; },
                      +[](Progress& progress) { progress.bad_steps = 0; },
                      +[](Progress& progress) { progress.bad_in_a_row = 1; },
                      +[](Progress& progress) { progress.loss_scale = 1; },
                      +[](Progress& progress) { progress.good_steps = 4; },
                      +[](Progress& progress) { progress.loss = std::nextafter(2.5, 3); }}) {
    Manifest other = manifest_;
    change(other.progress);
    EXPECT_NE(hash_with(tensors_, other), hash);
  }
  std::vector<FullTensor> reshaped = tensors_;
  reshaped[0].logical.shape = {3, 2};
  EXPECT_NE(hash_with(reshaped, testing::manifest_of(reshaped, 7)), hash);
  std::vector<FullTensor> renamed = tensors_;
  renamed[0].logical.name = "model.c";
  EXPECT_NE(hash_with(renamed, testing::manifest_of(renamed, 7)), hash);
  std::vector<FullTensor> changed = tensors_;
  changed[1].values[3] = -changed[1].values[3];
  EXPECT_NE(hash_with(changed, manifest_), hash);
}

TEST_F(ReadCheckpoint, ALossNeedNotBeANumber) {
  for (const double loss : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                            std::nan("1"), -0.0, 1e-310, 0.1}) {
    manifest_.progress.loss = loss;
    Checkpoint checkpoint(
        saved(folder_, std::to_string(++saved_), tensors_, testing::uncut(tensors_), manifest_));
    const double found = checkpoint.manifest().progress.loss;
    EXPECT_TRUE(std::isnan(loss) ? std::isnan(found) : found == loss) << loss;
    EXPECT_EQ(std::signbit(found), !std::isnan(loss) && std::signbit(loss));
  }
}

TEST_F(ReadCheckpoint, AFolderThatIsNoneIsTheUsersMistake) {
  EXPECT_THAT(error_of<UsageError>([&] { Checkpoint{folder_.path("none")}; }), HasSubstr("none"));
  EXPECT_THAT(error_of<DataError>([&] { Checkpoint{folder_.path("")}; }), HasSubstr("was never committed"));
}

}  // namespace
}  // namespace lockstep::checkpoint
