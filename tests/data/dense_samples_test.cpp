// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/dense/dense_samples.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/data/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::npy;

// Header of 128 bytes, then 12 values.
const std::string kGood = npy({{1, 2, 3, 0}, {4, 5, 6, 1}, {7, 8, 9, 2}});

class Dense : public ::testing::Test {
 protected:
  DenseSamples open(const std::string& content) { return DenseSamples(folder_.write("x.npy", content), 3); }
  std::string refusal(const std::string& content) {
    return error_of<DataError>([&] { open(content); });
  }
  // Of a file whose header is `fields` and whose data is that of the good one.
  std::string refusal_of_header(const std::string& fields) {
    return refusal(npy(fields, kGood.substr(kGood.size() - 48)));
  }
  std::string with(std::size_t offset, const std::string& bytes) {
    return refusal(std::string(kGood).replace(offset, bytes.size(), bytes));
  }

  TemporaryFolder folder_;
};

TEST_F(Dense, GivesColumnsAndClass) {
  const DenseSamples samples = open(kGood);
  EXPECT_EQ(samples.count(), 3U);
  ASSERT_EQ(samples.features(), 3U);
  std::vector<float> out(3, -1.0F);
  EXPECT_EQ(samples.read(1, {0, 3}, out), 1);
  EXPECT_THAT(out, ElementsAre(4, 5, 6));
  EXPECT_EQ(samples.read(2, {1, 2}, out), 2);
  EXPECT_THAT(out, ElementsAre(0, 8, 0));
}

TEST_F(Dense, ReadsEveryVersionAndSpelling) {
  std::string second = kGood;
  second.replace(6, 4, std::string("\x02\x00\x76\x00\x00\x00", 6));
  EXPECT_EQ(open(second).count(), 3U);
  const std::string data = kGood.substr(kGood.size() - 48);
  EXPECT_EQ(open(npy("{ \"shape\":(3,4,),'fortran_order':False, 'descr':'<f4'}", data)).count(), 3U);
}

TEST_F(Dense, RefusalsNameFileOffsetAndReason) {
  const std::string at = folder_.path("x.npy") + " at byte ";
  EXPECT_THAT(refusal(""), HasSubstr(at + "0: this is no NumPy file"));
  EXPECT_THAT(with(0, "X"), HasSubstr(at + "0: this is no NumPy file"));
  EXPECT_THAT(with(6, "\x04"), HasSubstr(at + "6: version 4"));
  EXPECT_THAT(refusal(kGood.substr(0, 9)), HasSubstr(at + "9: the file ends within its header"));
  EXPECT_THAT(refusal(kGood.substr(0, 40)),
              HasSubstr(at + "8: the header is said to have 118 bytes, but 30 follow"));
  EXPECT_THAT(refusal(kGood.substr(0, kGood.size() - 4)),
              HasSubstr(at + "172: the file ends here, but its header describes 3 rows of 4 columns"));
  EXPECT_THAT(refusal(kGood + "x"), HasSubstr(at + "177: the file ends here"));
  EXPECT_THAT(with(kGood.size() - 48, testing::bytes_of<float>({NAN})),
              HasSubstr(at + "128: column 0 of sample 0 is nan"));
  EXPECT_THAT(with(kGood.size() - 4, testing::bytes_of<float>({3})),
              HasSubstr(at + "172: the last column of sample 2 is 3: no class from 0 to 2"));
  for (const float value : {-1.0F, 0.5F}) {
    EXPECT_THAT(with(kGood.size() - 4, testing::bytes_of<float>({value})), HasSubstr("no class"));
  }
  EXPECT_THROW(DenseSamples(folder_.path("none.npy"), 3), UsageError);
}

TEST_F(Dense, RefusesOtherMatrices) {
  const std::string order = "'fortran_order': False, ";
  EXPECT_THAT(refusal_of_header("{'descr': '<f8', " + order + "'shape': (3, 4), }"),
              HasSubstr("the values are '<f8': save them as float32"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }"),
              HasSubstr("not in C order"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', " + order + "'shape': (12,), }"), HasSubstr("1 dimension"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', " + order + "'shape': (3, 2, 2), }"),
              HasSubstr("more than 2 dimensions"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', " + order + "'shape': (12, 1), }"), HasSubstr("too few"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', " + order + "'shape': (0, 4), }"), HasSubstr("no sample"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', " + order + "'shape': (4611686018427387907, 4), }"),
              HasSubstr("the file ends here"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', " + order + "'shape': (99999999999999999999, 4), }"),
              HasSubstr("no whole number"));
  EXPECT_THAT(refusal_of_header("{'descr': '<f4', " + order + "}"), HasSubstr("lacks"));
  for (const char* broken : {"", "{", "{'descr'", "{'descr': '<f4'", "{'x': 1}", "{} {}"}) {
    EXPECT_THAT(refusal_of_header(broken), HasSubstr("x.npy at byte ")) << broken;
  }
}

// Whatever one byte is changed to, the file is read or refused, never worse.
TEST_F(Dense, SurvivesEveryChangedByteOfTheHeader) {
  for (std::size_t offset = 0; offset < 80; ++offset) {
    for (int value = 0; value < 256; value += 5) {
      std::string content = kGood;
      content[offset] = static_cast<char>(value);
      try {
        const DenseSamples samples = open(content);
        EXPECT_EQ(samples.count() * (samples.features() + 1), 12U);
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr("x.npy at byte "));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::data
