// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/secret.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/scoped_variable.h"

namespace lockstep::transport {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kGood = "0123456789abcdef";

TEST(Secret, ComesFromAPrivateFileWithoutItsFinalNewline) {
  const test::TemporaryFolder scratch;
  EXPECT_EQ(Secret::from_file(scratch.write("a", kGood + "\n")).value_for_environment(), kGood);
  EXPECT_EQ(Secret::from_file(scratch.write("b", kGood + "\n\n")).value_for_environment(), kGood + "\n");
  EXPECT_EQ(Secret::from_file(scratch.write("c", kGood, 0400)).value_for_environment(), kGood);
}

TEST(Secret, RefusesAFileThatOthersCanAccess) {
  const test::TemporaryFolder scratch;
  for (const mode_t mode : {0640u, 0604u, 0620u, 0602u, 0644u, 0666u, 0610u}) {
    const auto path = scratch.write("secret", kGood, mode);
    EXPECT_THAT(test::error_of<UsageError>([&] { Secret::from_file(path); }), HasSubstr("chmod 600 " + path))
        << std::oct << mode;
  }
}

TEST(Secret, RefusesAMissingFileAndWhatIsNoFile) {
  const test::TemporaryFolder scratch;
  EXPECT_THAT(test::error_of<UsageError>([&] { Secret::from_file(scratch.path() / "none"); }),
              HasSubstr("make one with `lockstep keygen"));
  EXPECT_THAT(test::error_of<UsageError>([&] { Secret::from_file(scratch.path()); }),
              HasSubstr("not a regular file"));
  const auto pipe = scratch.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(test::error_of<UsageError>([&] { Secret::from_file(pipe); }), HasSubstr("not a regular file"));
}

TEST(Secret, LimitsItsLength) {
  const test::TemporaryFolder scratch;
  EXPECT_THAT(test::error_of<UsageError>([&] { Secret::from_file(scratch.write("a", "")); }),
              HasSubstr("has 0 bytes"));
  EXPECT_THAT(
      test::error_of<UsageError>([&] { Secret::from_file(scratch.write("b", std::string(15, 'x'))); }),
      HasSubstr("has 15 bytes"));
  EXPECT_NO_THROW(Secret::from_file(scratch.write("c", std::string(4096, 'x') + "\n")));
  EXPECT_THROW(Secret::from_file(scratch.write("d", std::string(4097, 'x'))), UsageError);
  EXPECT_THROW(Secret::from_file(scratch.write("e", std::string(100'000, 'x'))), UsageError);
}

TEST(Secret, ErrorsNeverRepeatTheValue) {
  EXPECT_THAT(test::error_of<UsageError>([] { Secret::from_value("tooshort"); }), Not(HasSubstr("tooshort")));
  const test::ScopedVariable file("LOCKSTEP_SECRET_FILE", nullptr);
  const test::ScopedVariable value("LOCKSTEP_SECRET", "tooshort");
  EXPECT_THAT(test::error_of<UsageError>([] { Secret::from_environment(); }), Not(HasSubstr("tooshort")));
}

TEST(Secret, EnvironmentGivesTheValueOrAFileOrNothing) {
  const test::TemporaryFolder scratch;
  const test::ScopedVariable no_value("LOCKSTEP_SECRET", nullptr);
  const test::ScopedVariable no_file("LOCKSTEP_SECRET_FILE", nullptr);
  EXPECT_TRUE(Secret::from_environment().empty());
  {
    const test::ScopedVariable value("LOCKSTEP_SECRET", kGood.c_str());
    EXPECT_EQ(Secret::from_environment().value_for_environment(), kGood);
    const test::ScopedVariable file("LOCKSTEP_SECRET_FILE", "somewhere");
    EXPECT_THAT(test::error_of<UsageError>([] { Secret::from_environment(); }), HasSubstr("both set"));
  }
  {
    const test::ScopedVariable empty("LOCKSTEP_SECRET_FILE", "");
    EXPECT_EQ(
        test::error_of<UsageError>([] { Secret::from_environment(); }),
        "LOCKSTEP_SECRET_FILE is set, but empty: name the file of the secret, or unset it to have none");
    const test::ScopedVariable value("LOCKSTEP_SECRET", kGood.c_str());
    EXPECT_THAT(test::error_of<UsageError>([] { Secret::from_environment(); }), HasSubstr("both set"));
  }
  const test::ScopedVariable file("LOCKSTEP_SECRET_FILE", scratch.write("s", kGood).c_str());
  EXPECT_EQ(Secret::from_environment().value_for_environment(), kGood);
}

TEST(Secret, GeneratedOnesDiffer) {
  const Secret one = Secret::generate();
  EXPECT_EQ(one.bytes().size(), 64u);
  EXPECT_NE(one.value_for_environment(), Secret::generate().value_for_environment());
}

}  // namespace
}  // namespace lockstep::transport
