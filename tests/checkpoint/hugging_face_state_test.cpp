// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/state.h"

#include "tests/checkpoint/models.h"
#include "tests/checkpoint/tensors.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::llama_model;
using testing::tensor_of;

class State : public ::testing::Test {
 protected:
  State() {
    std::iota(plain_.begin(), plain_.end(), 1.0F);
    std::iota(turned_.begin(), turned_.end(), -2.0F);
  }
  std::vector<StateTensor> state() {
    return {
        {.name = "x.plain", .other_name = "plain", .shape = {4}, .values = plain_},
        {.name = "x.turned", .other_name = "turned", .shape = {2, 3}, .transposed = true, .values = turned_}};
  }
  void save(DType dtype, const std::string& prefix = "x.") {
    std::vector<OutgoingTensor> tensors;
    for (StateTensor& tensor : saved_ = state()) {
      tensor.name.replace(0, 2, prefix);
      tensors.push_back(outgoing(tensor, dtype));
    }
    save_folder(path_, {.model = llama_model()}, std::move(tensors), {});
  }
  void read(std::span<const StateTensor> tensors) {
    read_state(ModelFolder(path_), tensors, [](std::string_view name) { return name == "mask"; });
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path("");
  std::vector<float> plain_ = std::vector<float>(4);
  std::vector<float> turned_ = std::vector<float>(6);
  std::vector<StateTensor> saved_;
};

TEST_F(State, GoesThereAndBackInEveryDtypeAndUnderBothNames) {
  const auto plain = plain_, turned = turned_;
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const char* prefix : {"x.", ""}) {
      save(dtype, prefix);
      plain_.assign(4, 0);
      turned_.assign(6, 0);
      read(state());
      EXPECT_EQ(plain_, plain);
      EXPECT_EQ(turned_, turned);
    }
  }
}

TEST_F(State, TheFileHasTheTransposedMatrix) {
  save(DType::fp32);
  const ModelFolder folder(path_);
  const auto [file, tensor] = folder.find("x.turned");
  EXPECT_THAT(tensor->shape, ElementsAre(3, 2));
  std::vector<float> values(6);
  std::memcpy(values.data(), file->bytes_of(*tensor).data(), 24);
  EXPECT_THAT(values, ElementsAre(-2, 1, -1, 2, 0, 3));
}

TEST_F(State, NamesTheFirstTensorThatDoesNotFit) {
  save(DType::fp32);
  std::vector<StateTensor> other = state();
  other[1].shape = {3, 2};
  EXPECT_THAT(error_of<UsageError>([&] { read(other); }),
              HasSubstr("tensor 'x.turned' has the shape [3, 2], but the model needs [2, 3]"));
  other = state();
  other.push_back({.name = "more", .shape = {1}, .values = plain_});
  EXPECT_THAT(error_of<UsageError>([&] { read(other); }), HasSubstr("tensor 'more' is missing"));
  other = state();
  other.pop_back();
  EXPECT_THAT(error_of<UsageError>([&] { read(other); }),
              HasSubstr("tensor 'x.turned' is not a parameter of the model"));
  save_folder(path_, {.model = llama_model()},
              {tensor_of("x.plain", DType::int32, {4}, std::string(16, 'x'))}, {});
  EXPECT_THAT(error_of<UsageError>([&] { read(state()); }), HasSubstr("'x.plain' is of type I32"));
}

// Whoever reads what is no longer there is ended by the kernel.
TEST_F(State, AFileThatWasCutOffSinceItWasOpenedIsRefused) {
  save(DType::fp32);
  const ModelFolder folder(path_);
  std::filesystem::resize_file(folder_.path("model.safetensors"), 8);
  const std::vector<StateTensor> mine = state();
  EXPECT_THAT(error_of<DataError>([&] { read_state(folder, mine, [](std::string_view) { return true; }); }),
              HasSubstr("model.safetensors at byte 8: the file ends here since it was opened"));
}

TEST_F(State, WhatMayBeIgnoredIs) {
  std::vector<OutgoingTensor> tensors = {tensor_of("mask", DType::uint8, {1}, "m")};
  const std::vector<StateTensor> mine = state();
  for (const StateTensor& tensor : mine) tensors.push_back(outgoing(tensor, DType::fp32));
  save_folder(path_, {.model = llama_model()}, std::move(tensors), {});
  EXPECT_NO_THROW(read(mine));
}

}  // namespace
}  // namespace lockstep::checkpoint
