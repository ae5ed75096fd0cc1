// SPDX-License-Identifier: Apache-2.0
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/safetensors/file.h"

#include "tests/checkpoint/tensors.h"
#include "tests/data/tokens.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using testing::tensor_of;
using testing::text_of;

// Byte for byte what the format's own writer makes of the same tensors.
TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("t"),
                    {tensor_of("b", DType::bf16, {1, 2}, "BBBB"), tensor_of("c", DType::fp32, {}, "CCCC"),
                     tensor_of("a", DType::bf16, {1}, "AA")},
                    {{"format", "pt"}});
  std::string header =
      R"({"__metadata__":{"format":"pt"},"c":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},)"
      R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[6,10]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(folder.read("t"), testing::file_of(header, "CCCCAABBBB"));
  EXPECT_THAT(folder.names(), ElementsAre("t"));
}

TEST(Safetensors, EveryDTypeHasANameOfItsOwn) {
  for (const DType dtype : kAllDTypes) EXPECT_EQ(dtype_of_type(type_of(dtype)), dtype);
  EXPECT_EQ(dtype_of_type("F8_E4M3"), std::nullopt);
  EXPECT_EQ(dtype_of_type("F31"), std::nullopt);
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    std::map<std::string, std::string> contents;
    std::vector<OutgoingTensor> tensors;
    for (auto count = random() % 6; count > 0; --count) {
      const DType dtype = kAllDTypes[random() % kAllDTypes.size()];
      std::vector<std::int64_t> shape;
      for (auto dims = random() % 4; dims > 0; --dims) shape.push_back(random() % 5);
      OutgoingTensor tensor = {
          .name = "t\"\\\xC3\xA4 " + std::to_string(count), .dtype = dtype, .shape = shape, .fill = nullptr};
      std::string content(tensor.bytes(), '\0');
      for (char& c : content) c = static_cast<char>(random());
      contents[tensor.name] = content;
      tensors.push_back(tensor_of(tensor.name, dtype, shape, content));
    }
    const Metadata metadata = random() % 2 == 0 ? Metadata{} : Metadata{{"format", "pt"}, {"", "x\n"}};
    write_safetensors(folder.path("t"), tensors, metadata);

    const SafetensorsFile file(folder.path("t"));
    EXPECT_EQ(file.header().metadata, metadata);
    ASSERT_EQ(file.header().tensors.size(), tensors.size());
    for (const OutgoingTensor& tensor : tensors) {
      const StoredTensor& found = file.header().tensors.at(tensor.name);
      EXPECT_EQ(found.type, type_of(tensor.dtype));
      EXPECT_EQ(found.shape, tensor.shape);
      EXPECT_EQ(text_of(file.bytes_of(found)), contents[tensor.name]);
      EXPECT_EQ(found.begin % size_of(tensor.dtype), 0U) << "not aligned";
    }
  }
}

TEST(Safetensors, AFailedWriteLeavesTheOldFileAlone) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("t"), {tensor_of("a", DType::uint8, {1}, "A")}, {});
  const std::string before = folder.read("t");
  OutgoingTensor broken = tensor_of("a", DType::uint8, {1}, "B");
  broken.fill = [](Bytes) { throw UsageError("no"); };
  EXPECT_THROW(write_safetensors(folder.path("t"), {broken}, {}), UsageError);
  EXPECT_EQ(folder.read("t"), before);
  EXPECT_THAT(folder.names(), ElementsAre("t"));
}

TEST(Safetensors, AMissingFileIsTheUsersMistake) {
  EXPECT_THROW(SafetensorsFile("/no/such/file"), UsageError);
  EXPECT_THROW(write_safetensors("/no/such/file", {}, {}), UsageError);
}

}  // namespace
}  // namespace lockstep::checkpoint
