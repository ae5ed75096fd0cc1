// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/exit_code.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file_lock.h"

namespace lockstep {
namespace {

TEST(ExitCode, IsThatOfTheKind) {
  EXPECT_EQ(exit_code_of(UsageError("x")), 2);
  EXPECT_EQ(exit_code_of(DataError("x")), 65);
  EXPECT_EQ(exit_code_of(InternalError("x")), 70);
  EXPECT_EQ(exit_code_of(InUseError("x")), 73);
  EXPECT_EQ(exit_code_of(CommError("x")), 75);
  EXPECT_EQ(exit_code_of(PeerLost("x")), 75);
  EXPECT_EQ(exit_code_of(std::runtime_error("x")), 70);
}

TEST(ExitCode, APathThatCannotBeUsedIsNoBug) {
  for (const std::errc reason : {std::errc::permission_denied, std::errc::too_many_symbolic_link_levels,
                                 std::errc::no_space_on_device, std::errc::io_error}) {
    EXPECT_EQ(exit_code_of(std::filesystem::filesystem_error("x", std::make_error_code(reason))), 2);
  }
}

TEST(ExitCode, MissingMemoryIsNoBug) {
  EXPECT_EQ(exit_code_of(std::bad_alloc()), 2);
  EXPECT_EQ(exit_code_of(std::system_error(std::make_error_code(std::errc::not_enough_memory))), 2);
  EXPECT_EQ(exit_code_of(std::runtime_error("cannot allocate memory")), 2);
  EXPECT_EQ(exit_code_of(std::system_error(std::make_error_code(std::errc::io_error))), 70);
  EXPECT_EQ(exit_code_of(InternalError("cannot allocate memory")), 70);
}

}  // namespace
}  // namespace lockstep
