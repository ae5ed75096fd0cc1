// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/sentencepiece/tokenizer.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

TEST(SentencePiece, ABuildWithoutItSaysWhatToDo) {
  test::TemporaryFolder folder;
  const std::string path = folder.write("tokenizer.model", "");
  EXPECT_THAT(test::error_of<UsageError>([&] { load_sentencepiece(path); }),
              ::testing::HasSubstr("install libsentencepiece-dev"));
  EXPECT_THAT(test::error_of<UsageError>([&] { load_tokenizer(path); }),
              ::testing::HasSubstr("only `lockstep prepare` reads sentencepiece models"));
  EXPECT_THAT(test::error_of<UsageError>([&] { load_tokenizer(folder.path("")); }),
              ::testing::HasSubstr("tokenizer.model: only"));
}

}  // namespace
}  // namespace lockstep::data
