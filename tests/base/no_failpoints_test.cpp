// SPDX-License-Identifier: Apache-2.0
//
// A program that was built without failpoints.
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"

#include "tests/support/error_of.h"

namespace lockstep::failpoint {
namespace {

TEST(NoFailpoints, CannotBeArmed) {
  arm("");
  EXPECT_EQ(test::error_of<UsageError>([] { arm("checkpoint.begun:throw"); }),
            "this program was built without failpoints: build it with LOCKSTEP_FAILPOINTS=ON");
}

TEST(NoFailpoints, ArePassedEvenWhenTheFlagIsSet) {
  is_armed = true;
  EXPECT_NO_THROW(LOCKSTEP_FAILPOINT("checkpoint.begun"));
}

}  // namespace
}  // namespace lockstep::failpoint
