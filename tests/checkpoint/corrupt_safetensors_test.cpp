// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a safetensors file can be broken is refused with file and offset.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/safetensors/file.h"

#include "tests/checkpoint/tensors.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using test::TemporaryFolder;
using testing::file_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::tensor_of;

std::string refusal_of(const std::string& file) {
  return error_of<DataError>([&] { parse_safetensors(std::as_bytes(std::span(file)), "f"); });
}
std::string refusal_of(const std::string& header, const std::string& data) {
  return refusal_of(file_of(header, data));
}
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"("x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{" + entry(dtype, shape, offsets) + "}";
}

TEST(CorruptSafetensors, TheLengthOfTheHeader) {
  EXPECT_THAT(refusal_of("1234567"), StartsWith("f at byte 7: the file ends within its first 8 bytes"));
  EXPECT_THAT(refusal_of(std::string(8, '\xFF')), StartsWith("f at byte 0: a header of 1844674407"));
  std::string long_header = file_of("{}", "");
  long_header[0] = 3;
  EXPECT_THAT(refusal_of(long_header), StartsWith("f at byte 10: the file ends here"));
  EXPECT_THAT(refusal_of(file_of("", "")), HasSubstr("does not begin with '{'"));
}

TEST(CorruptSafetensors, WhatTheHeaderSays) {
  EXPECT_EQ(refusal_of(one("F32", "[2]", "[0,8]"), "12345678"), "no such error");
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,8]"), "1234567"), HasSubstr("has 7 bytes of data"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,8]"), "123456789"),
              StartsWith("f at byte 70: 1 bytes follow the last tensor"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[1,9]"), "123456789"),
              StartsWith("f at byte 62: 1 bytes belong to no tensor"));
  EXPECT_THAT(refusal_of(one("F32", "[3]", "[0,8]"), "12345678"), HasSubstr("not what its dtype and shape"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[8,0]"), "12345678"), HasSubstr("data_offsets 8 and 0"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,8,8]"), "12345678"), HasSubstr("not two data_offsets"));
  EXPECT_THAT(refusal_of(one("F31", "[2]", "[0,8]"), "12345678"), HasSubstr("unknown dtype 'F31'"));
  EXPECT_THAT(refusal_of("{" + entry("U8", "[1]", "[0,1]") + "," + entry("U8", "[0]", "[1,1]") + "}", "1"),
              HasSubstr("'x' comes twice"));
  EXPECT_THAT(refusal_of(R"({"y":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)" +
                             entry("U8", "[2]", "[1,3]") + "}",
                         "123"),
              HasSubstr("two tensors overlap"));
}

TEST(CorruptSafetensors, ProductsThatDoNotFit) {
  const std::string half = "4294967296";
  for (const std::string& shape : {"[" + half + "," + half + "]", std::string("[18446744073709551615]"),
                                   "[" + half + "," + half + ",0]", std::string("[9223372036854775808,0]")}) {
    EXPECT_THAT(refusal_of(one("F32", shape, "[0,0]"), ""), HasSubstr("not what its dtype and shape"))
        << shape;
  }
  EXPECT_THAT(refusal_of(one("U8", "[0]", "[0,18446744073709551615]"), ""), HasSubstr("0 bytes of data"));
}

TEST(CorruptSafetensors, JsonOfAnotherForm) {
  for (const char* header : {R"({)",
                             R"([])",
                             R"({"x":1})",
                             R"({"x":{}})",
                             R"({"x":null})",
                             R"({"x":[]})",
                             R"({"":{}})",
                             R"({"x":{"dtype":1,"shape":[],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":{"a":"b"}}})",
                             R"({"x":{"dtype":"U8","shape":"a","data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"U8","shape":[[1]],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"U8","shape":[1.0],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"U8","shape":[true],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"U8","shape":["1"],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})",
                             R"({"__metadata__":{"a":1}})",
                             R"({"__metadata__":{"a":{}}})",
                             R"({"__metadata__":"a"})",
                             R"({"__metadata__":{},"__metadata__":{}})",
                             R"({} x)"}) {
    EXPECT_THAT(refusal_of(header, ""), StartsWith("f at byte ")) << header;
  }
  EXPECT_THAT(refusal_of("{" + std::string(1'000'000, '['), ""), StartsWith("f at byte "));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  EXPECT_THAT(refusal_of(deep, ""), StartsWith("f at byte "));
}

TEST(CorruptSafetensors, EveryTruncationAndChangeIsRefusedOrHarmless) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("t"),
                    {tensor_of("a", DType::fp32, {2}, "12345678"), tensor_of("b", DType::uint8, {3}, "123")},
                    {{"format", "pt"}});
  const std::string whole = folder.read("t");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(refusal_of(whole.substr(0, size)), StartsWith("f at byte ")) << size;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string file = whole;
    for (auto changes = random() % 3 + 1; changes > 0; --changes) {
      file[random() % file.size()] =
          random() % 2 == 0 ? static_cast<char>(random()) : "0123456789[]{},:\""[random() % 17];
    }
    try {
      const SafetensorsHeader header = parse_safetensors(std::as_bytes(std::span(file)), "f");
      for (const auto& [name, tensor] : header.tensors) {
        ASSERT_LE(tensor.begin, tensor.end);
        ASSERT_LE(tensor.end, file.size());
      }
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), StartsWith("f at byte "));
    }
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
