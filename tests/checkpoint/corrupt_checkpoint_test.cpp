// SPDX-License-Identifier: Apache-2.0
//
// Whatever happens to the bytes of a checkpoint is found, and the error says where.
#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/safetensors/file.h"

#include "tests/checkpoint/saved.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Cut;
using testing::full_tensor;
using testing::FullTensor;
using ::testing::HasSubstr;

constexpr const char* kShard = "s/step-7/rank-1.safetensors";

class CorruptCheckpoint : public ::testing::Test {
 protected:
  CorruptCheckpoint() {
    CheckpointStore store(folder_.path("s"));
    testing::save(store, real_disk(), tensors_, cut_, testing::manifest_of(tensors_, 7));
  }

  std::string path(const std::string& name) const { return folder_.path("s/step-7/" + name); }
  // What opening it and comparing all hashes ends with.
  std::string refusal() const {
    return error_of<DataError>([&] { Checkpoint(folder_.path("s/step-7")).verify(); });
  }
  // In place: file systems wait for the disk when a file is written anew.
  void put(const char* file, std::size_t byte, char value) const {
    std::fstream out(folder_.path(file), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(byte));
    out.put(value);
  }
  // What the checkpoint is refused with while one bit is another.
  std::string refusal_with_flipped(const char* file, const std::string& whole, std::size_t byte,
                                   unsigned bit) const {
    put(file, byte, static_cast<char>(whole[byte] ^ (1 << bit)));
    const std::string why = refusal();
    put(file, byte, whole[byte]);
    return why;
  }

  test::TemporaryFolder folder_;
  std::vector<FullTensor> tensors_ = {full_tensor("model.a", {30, 20}), full_tensor("model.b", {2000})};
  Cut cut_ = {{{0, {0, 5, 20, 30}}, {1, {0, 900, 900, 1}}},
              {{0, {5, 15, 20, 30}}, {1, {900, 1100, 1100, 1}}}};
};

TEST_F(CorruptCheckpoint, NoneOfItIs) {
  EXPECT_EQ(refusal(), "no such error");
}

TEST_F(CorruptCheckpoint, EveryByteOfAHeader) {
  const std::string whole = folder_.read(kShard);
  const std::size_t data_begin = SafetensorsFile(folder_.path(kShard)).header().tensors.begin()->second.begin;
  for (std::size_t byte = 0; byte < data_begin; ++byte) {
    EXPECT_THAT(refusal_with_flipped(kShard, whole, byte, byte % 8), HasSubstr(path("rank-1.safetensors")))
        << byte;
  }
}

TEST_F(CorruptCheckpoint, BitsOfTheValues) {
  const std::string whole = folder_.read(kShard);
  const SafetensorsHeader header = SafetensorsFile(folder_.path(kShard)).header();
  const StoredTensor& a = header.tensors.at("model.a@5");
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t byte = a.begin + random() % (whole.size() - a.begin);
    const std::string tensor = byte < a.end ? "model.a" : "model.b";
    EXPECT_THAT(refusal_with_flipped(kShard, whole, byte, random() % 8),
                AllOf(HasSubstr(path("rank-1.safetensors")), HasSubstr("'" + tensor + "'")))
        << byte;
  }
}

TEST_F(CorruptCheckpoint, OneTensorDoesNotSpoilTheOthers) {
  put(kShard, std::filesystem::file_size(folder_.path(kShard)) - 1, 'x');
  Checkpoint checkpoint(folder_.path("s/step-7"));
  EXPECT_THAT(error_of<DataError>([&] { testing::read_all(checkpoint, "model.b"); }),
              AllOf(HasSubstr(path("rank-1.safetensors")), HasSubstr("'model.b'")));
  EXPECT_EQ(testing::read_all(checkpoint, "model.a"), tensors_[0].values);
}

// A read of a few elements sees damage to any of those that came with them, and goes on seeing it.
TEST_F(CorruptCheckpoint, APieceIsReadAsAWhole) {
  put(kShard, std::filesystem::file_size(folder_.path(kShard)) - 1, 'x');
  Checkpoint checkpoint(folder_.path("s/step-7"));
  float value = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(checkpoint.read("model.b", {900, 901}, {&value, 1}), DataError);
  }
  checkpoint.read("model.b", {899, 900}, {&value, 1});
  EXPECT_EQ(value, tensors_[1].values[899]);
}

TEST_F(CorruptCheckpoint, EveryByteOfTheManifestAndOfCommit) {
  for (const char* name : {"s/step-7/manifest.json", "s/step-7/COMMIT"}) {
    const std::string whole = folder_.read(name);
    for (std::size_t byte = 0; byte < whole.size(); ++byte) {
      EXPECT_THAT(refusal_with_flipped(name, whole, byte, byte % 8),
                  AnyOf(HasSubstr(path("manifest.json")), HasSubstr("was never committed")))
          << byte;
    }
    for (std::size_t size = whole.size(); size-- > 0;) {
      std::filesystem::resize_file(folder_.path(name), size);
      EXPECT_THAT(refusal(), AnyOf(HasSubstr(path("manifest.json")), HasSubstr("was never committed")))
          << size;
    }
    folder_.write(name, whole);
  }
  EXPECT_EQ(refusal(), "no such error");
}

TEST_F(CorruptCheckpoint, AShardOfAnotherLength) {
  const std::string whole = folder_.read(kShard);
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{8}, whole.size() - 1}) {
    folder_.write(kShard, whole.substr(0, size));
    EXPECT_THAT(refusal(), AllOf(HasSubstr(path("rank-1.safetensors")),
                                 HasSubstr("at byte " + std::to_string(size) + ": the file ends here")));
  }
  folder_.write(kShard, whole + "x");
  EXPECT_THAT(refusal(), HasSubstr("at byte " + std::to_string(whole.size() + 1)));
}

TEST_F(CorruptCheckpoint, AShardThatIsMissingOrSomethingElse) {
  std::filesystem::rename(folder_.path(kShard), path("moved"));
  EXPECT_THAT(refusal(), AllOf(HasSubstr(path("rank-1.safetensors")), HasSubstr("No such file")));
  std::filesystem::create_symlink("moved", folder_.path(kShard));
  EXPECT_THAT(refusal(), AllOf(HasSubstr(path("rank-1.safetensors")), HasSubstr("symbolic link")));
  std::filesystem::remove(folder_.path(kShard));
  std::filesystem::create_directory(folder_.path(kShard));
  EXPECT_THAT(refusal(), AllOf(HasSubstr(path("rank-1.safetensors")), HasSubstr("not a regular file")));
}

TEST_F(CorruptCheckpoint, AShardOfAnotherCheckpoint) {
  std::vector<FullTensor> others = {full_tensor("model.a", {30, 20}, 1), full_tensor("model.b", {2000}, 1)};
  CheckpointStore other(folder_.path("other"));
  testing::save(other, real_disk(), others, cut_, testing::manifest_of(others, 7));
  folder_.write(kShard, folder_.read("other/step-7/rank-1.safetensors"));
  EXPECT_THAT(refusal(), AllOf(HasSubstr(path("rank-1.safetensors")), HasSubstr("'model.a'")));
}

TEST_F(CorruptCheckpoint, ShardsThatHaveChangedPlaces) {
  std::filesystem::rename(path("rank-0.safetensors"), path("x"));
  std::filesystem::rename(path("rank-1.safetensors"), path("rank-0.safetensors"));
  std::filesystem::rename(path("x"), path("rank-1.safetensors"));
  EXPECT_THAT(refusal(), HasSubstr(path("rank-0.safetensors")));
}

TEST_F(CorruptCheckpoint, AShardThatShrinksWhileItIsRead) {
  Checkpoint checkpoint(folder_.path("s/step-7"));
  std::filesystem::resize_file(folder_.path(kShard), 3000);
  EXPECT_THAT(error_of<DataError>([&] { testing::read_all(checkpoint, "model.b"); }),
              HasSubstr("rank-1.safetensors at byte 3000: the file ends here"));
}

}  // namespace
}  // namespace lockstep::checkpoint
