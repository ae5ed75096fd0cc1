// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train` with the ranks of a launcher that is not ours.
#include <gtest/gtest.h>

#include "tests/cli/train_program.h"

namespace lockstep::testing {
namespace {

using Mpirun = TrainProgram;

TEST_F(Mpirun, StartsTheRanksOfARunAndTheBitsStay) {
  ASSERT_EQ(train({"--job.dump_folder", folder_.path("alone")}).exit_code, 0);
  const Finished finished = run_shell("mpirun --allow-run-as-root --oversubscribe -n 3 \"$LOCKSTEP\" train " +
                                      run_ + " --job.dump_folder " + folder_.path("three"));
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  expect_same_steps("three", "alone");
}

}  // namespace
}  // namespace lockstep::testing
