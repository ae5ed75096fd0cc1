// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/sentencepiece/tokenizer.h"

#include "tests/data/files.h"

namespace lockstep::data {
namespace {

TEST(SentencePiece, ABuildWithoutItSaysWhatToDo) {
  testing::Folder folder;
  const std::string path = folder.write("tokenizer.model", "");
  EXPECT_THAT(testing::message_of<UsageError>([&] { load_sentencepiece(path); }),
              ::testing::HasSubstr("install libsentencepiece-dev"));
  EXPECT_THAT(testing::message_of<UsageError>([&] { load_tokenizer(path); }),
              ::testing::HasSubstr("only `lockstep prepare` reads sentencepiece models"));
  EXPECT_THAT(testing::message_of<UsageError>([&] { load_tokenizer(folder.path("")); }),
              ::testing::HasSubstr("tokenizer.model: only"));
}

}  // namespace
}  // namespace lockstep::data
