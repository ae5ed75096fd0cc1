// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/exit_codes.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {
namespace {

template <typename Error>
Verdict verdict_for(const char* text) {
  return verdict_on(std::make_exception_ptr(Error(text)));
}

TEST(ExitCodes, EveryKindOfErrorHasItsCode) {
  EXPECT_EQ(verdict_for<UsageError>("x").code, 2);
  EXPECT_EQ(verdict_for<DataError>("x").code, 65);
  EXPECT_EQ(verdict_for<InternalError>("x").code, 70);
  EXPECT_EQ(verdict_for<CommError>("x").code, 75);
  EXPECT_EQ(verdict_for<PeerLost>("x").code, 75);
  EXPECT_EQ(verdict_for<Timeout>("x").code, 75);
  EXPECT_EQ(verdict_for<AuthenticationError>("x").code, 75);
  EXPECT_EQ(verdict_for<std::runtime_error>("x").code, 70);
  EXPECT_EQ(verdict_on(std::make_exception_ptr(7)).code, 70);
}

TEST(ExitCodes, ASentenceIsOneLine) {
  EXPECT_EQ(verdict_for<UsageError>("two\nlines").sentence, "two lines");
}

}  // namespace
}  // namespace lockstep::cli
