// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a corpus can be broken is refused with file and offset.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/corpus/formats.h"
#include "lockstep/data/corpus/megatron_writer.h"

#include "tests/data/tokens.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;
using testing::bytes_of;
using ::testing::HasSubstr;

class CorruptMegatron : public ::testing::Test {
 protected:
  CorruptMegatron() {
    MegatronWriter writer(prefix_, TokenType::uint16);
    writer.add(std::vector<Token>{1, 2, 3}, true);
    writer.add(std::vector<Token>{4, 5}, true);
    writer.finish();
    index_ = folder_.read("c.idx");
  }

  // What opening says after `bytes` of the index were replaced at `offset`.
  std::string with(std::size_t offset, const std::string& bytes) {
    return whole(std::string(index_).replace(offset, bytes.size(), bytes));
  }
  std::string whole(const std::string& index) {
    folder_.write("c.idx", index);
    return error_of<DataError>([&] { open_corpus(prefix_, {.vocab_size = 100}); });
  }

  TemporaryFolder folder_;
  std::string prefix_ = folder_.path("c");
  std::string index_;
};

template <typename T>
std::string number(T value) {
  return bytes_of<T>({value});
}

// Offsets: magic 0, version 9, type 17, sequences 18, documents 26, lengths 34, pointers 42, documents 58.
TEST_F(CorruptMegatron, NamesFileOffsetAndReason) {
  const std::string at = prefix_ + ".idx at byte ";
  EXPECT_THAT(with(0, "X"), HasSubstr(at + "0: this is no Megatron index"));
  EXPECT_THAT(with(9, number<std::uint64_t>(2)), HasSubstr(at + "9: version 2"));
  EXPECT_THAT(with(17, "\x07"), HasSubstr(at + "17: 7 is no code of an integer type"));
  EXPECT_THAT(with(18, number<std::uint64_t>(1000)), HasSubstr(at + "18: 1000 sequences"));
  EXPECT_THAT(with(18, number<std::uint64_t>(1ULL << 62)), HasSubstr(at + "18: "));
  EXPECT_THAT(with(26, number<std::uint64_t>(~0ULL)), HasSubstr(at + "18: "));
  EXPECT_THAT(with(26, number<std::uint64_t>(0)), HasSubstr(at + "26: the list of documents is empty"));
  EXPECT_THAT(with(34, number<std::int32_t>(-3)), HasSubstr(at + "34: sequence 0 has length -3"));
  EXPECT_THAT(with(42, number<std::int64_t>(2)), HasSubstr(at + "42: sequence 0 is said to begin at byte 2"));
  EXPECT_THAT(with(50, number<std::int64_t>(4)), HasSubstr(at + "50: sequence 1 is said to begin at byte 4"));
  EXPECT_THAT(with(58, number<std::int64_t>(1)), HasSubstr(at + "58: document entry 0 is 1"));
  EXPECT_THAT(with(66, number<std::int64_t>(-1)), HasSubstr(at + "66: document entry 1 is -1"));
  EXPECT_THAT(with(74, number<std::int64_t>(1)), HasSubstr(at + "74: document entry 2 is 1"));
  EXPECT_THAT(whole(index_ + "abc"), HasSubstr(at + "82: 3 bytes follow"));
  EXPECT_THAT(whole(""), HasSubstr(at + "0: the file ends within its header"));
}

TEST_F(CorruptMegatron, AcceptsTheModesOfMultimodalFiles) {
  folder_.write("c.idx", index_ + std::string(2, '\0'));
  EXPECT_EQ(open_corpus(prefix_, {})->size(), 5U);
}

TEST_F(CorruptMegatron, EveryTruncationIsRefused) {
  for (std::size_t size = 0; size < index_.size(); ++size) {
    EXPECT_THAT(whole(index_.substr(0, size)), HasSubstr("c.idx at byte ")) << size;
  }
}

TEST_F(CorruptMegatron, TheTokensMustHaveTheSizeOfTheIndex) {
  const std::string tokens = folder_.read("c.bin");
  for (const std::string& wrong : {tokens.substr(0, 9), tokens.substr(0, 8), tokens + "xx", std::string()}) {
    folder_.write("c.bin", wrong);
    EXPECT_THAT(error_of<DataError>([&] { open_corpus(prefix_, {}); }),
                HasSubstr("c.bin at byte " + std::to_string(wrong.size()) + ": the file ends here"));
  }
}

TEST_F(CorruptMegatron, ChangedBytesAreRefusedOrHarmless) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string index = index_;
    for (auto changes = random() % 3 + 1; changes > 0; --changes) {
      index[random() % index.size()] = static_cast<char>(random() % 4 == 0 ? random() : random() % 4);
    }
    folder_.write("c.idx", index);
    try {
      EXPECT_LE(open_corpus(prefix_, {})->size(), 10U);
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr(" at byte "));
    }
  }
}

TEST(CorruptLlmC, IsRefused) {
  TemporaryFolder folder;
  const auto message = [&](std::vector<std::int32_t> begin, std::size_t size) {
    begin.resize(256);
    const std::string path = folder.write("c.bin", bytes_of(begin) + std::string(size, '\0'));
    return error_of<DataError>([&] { open_corpus(path, {}); });
  };
  EXPECT_THAT(message({20240520, 2, 0}, 0), HasSubstr("at byte 4: version 2"));
  EXPECT_THAT(message({20240520, 1, -1}, 0), HasSubstr("at byte 8: the number of tokens is -1"));
  EXPECT_THAT(message({20240520, 1, 4}, 7),
              HasSubstr("at byte 1031: the file ends here, but its header describes 1032"));
  EXPECT_THAT(message({20240801, 7, 4}, 8), HasSubstr("describes 1040"));
  folder.write("d.bin", bytes_of<std::int32_t>({20240520, 1}));
  EXPECT_THAT(error_of<DataError>([&] { open_corpus(folder.path("d.bin"), {}); }),
              HasSubstr("at byte 8: the file ends"));
  EXPECT_THAT(error_of<DataError>([&] { open_llmc(folder.write("e.bin", "abcd"), 10); }),
              HasSubstr("no magic number"));
}

TEST(CorruptNanoGpt, ACutTokenIsRefused) {
  TemporaryFolder folder;
  folder.write("c.bin", "abc");
  EXPECT_THAT(error_of<DataError>([&] { open_corpus(folder.path("c.bin"), {}); }),
              HasSubstr("at byte 3: the last token of 2 bytes is cut off"));
}

}  // namespace
}  // namespace lockstep::data
