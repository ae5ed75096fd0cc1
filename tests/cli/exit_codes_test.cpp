// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/exit_codes.h"

#include <csignal>
#include <filesystem>
#include <new>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file_lock.h"
#include "lockstep/cli/errors.h"

namespace lockstep::cli {
namespace {

template <typename Error>
Verdict verdict_for(const char* text) {
  return verdict_on(std::make_exception_ptr(Error(text)));
}

TEST(ExitCodes, EveryKindOfErrorHasItsCode) {
  EXPECT_EQ(verdict_for<UsageError>("x").code, 2);
  EXPECT_EQ(verdict_for<DataError>("x").code, 65);
  EXPECT_EQ(verdict_for<InUseError>("x").code, 73);
  EXPECT_EQ(verdict_for<InternalError>("x").code, 70);
  EXPECT_EQ(verdict_for<CommError>("x").code, 75);
  EXPECT_EQ(verdict_for<PeerLost>("x").code, 75);
  EXPECT_EQ(verdict_for<Timeout>("x").code, 75);
  EXPECT_EQ(verdict_for<AuthenticationError>("x").code, 75);
  EXPECT_EQ(verdict_for<std::runtime_error>("x").code, 70);
  EXPECT_EQ(verdict_on(std::make_exception_ptr(7)).code, 70);
  EXPECT_EQ(verdict_for<OutputError>("x").code, 74);
  EXPECT_EQ(verdict_on(std::make_exception_ptr(Interrupted(SIGTERM))).code, 143);
  EXPECT_EQ(verdict_on(std::make_exception_ptr(Interrupted(SIGTERM))).sentence, "interrupted by SIGTERM");
  EXPECT_EQ(verdict_on(std::make_exception_ptr(Interrupted(SIGINT, "nothing was done"))).sentence,
            "interrupted by SIGINT: nothing was done");
}

TEST(ExitCodes, MissingMemoryIsNoBug) {
  const std::system_error no_thread(std::make_error_code(std::errc::resource_unavailable_try_again));
  const std::system_error other(std::make_error_code(std::errc::io_error));
  for (const auto& error : {std::make_exception_ptr(std::bad_alloc()), std::make_exception_ptr(no_thread)}) {
    EXPECT_EQ(verdict_on(error).code, 2);
    EXPECT_NE(verdict_on(error).sentence.find("not enough memory"), std::string::npos);
  }
  EXPECT_EQ(verdict_on(std::make_exception_ptr(other)).code, 70);
}

TEST(ExitCodes, APathThatCannotBeLookedAtIsTheUsersMatter) {
  const std::string longest(300, 'x');
  try {
    (void)std::filesystem::exists(longest);
    FAIL() << "such a name can be looked at";
  } catch (const std::filesystem::filesystem_error&) {
    const Verdict verdict = verdict_on(std::current_exception());
    EXPECT_EQ(verdict.code, 2);
    EXPECT_EQ(verdict.sentence, longest + ": File name too long");
  }
}

TEST(ExitCodes, AllPathsAreNamed) {
  const std::error_code full = std::make_error_code(std::errc::no_space_on_device);
  const auto sentence_of = [](const std::filesystem::filesystem_error& error) {
    return verdict_on(std::make_exception_ptr(error)).sentence;
  };
  EXPECT_EQ(sentence_of({"cannot rename", "runs/a", "runs/b", full}),
            "runs/a and runs/b: No space left on device");
  EXPECT_EQ(sentence_of({"cannot remove", "runs/a", full}), "runs/a: No space left on device");
  EXPECT_THAT(sentence_of({"cannot get current path", full}),
              ::testing::HasSubstr("cannot get current path: No space left on device"));
}

TEST(ExitCodes, ASentenceIsOneLine) {
  EXPECT_EQ(verdict_for<UsageError>("two\nlines").sentence, "two lines");
}

TEST(ExitCodes, ATerminalObeysNothingInASentence) {
  EXPECT_EQ(verdict_for<UsageError>("no file a\x1b[31m\x7f\xff.toml").sentence,
            "no file a\\x1b[31m\\x7f\\xff.toml");
  EXPECT_EQ(verdict_for<DataError>("Gr\u00fc\u00dfe \u65e5 \u009b half of it: \xe6\x97").sentence,
            "Gr\u00fc\u00dfe \u65e5 \\xc2\\x9b half of it: \\xe6\\x97");
  EXPECT_EQ(verdict_for<UsageError>("\u202eturned").sentence, "\\xe2\\x80\\xaeturned");
  EXPECT_EQ(verdict_on(std::make_exception_ptr(Interrupted(2, "a\x1b]0;b\a is there"))).sentence,
            "interrupted by SIGINT: a\\x1b]0;b\\x07 is there");
  EXPECT_EQ(verdict_on(std::make_exception_ptr(WorkerFailed(2, "rank 0: \xff"))).sentence, "rank 0: \\xff");
  EXPECT_EQ(verdict_for<std::runtime_error>("\x80").sentence, "internal error: \\x80; please report this");
}

}  // namespace
}  // namespace lockstep::cli
