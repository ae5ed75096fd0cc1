// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train` with the ranks of PyTorch's launcher.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/cli/train_program.h"

namespace lockstep::testing {
namespace {

using Torchrun = TrainProgram;

TEST_F(Torchrun, StartsTheRanksOfARunAndTheBitsStay) {
  ASSERT_EQ(train({"--job.dump_folder", folder_.path("alone")}).exit_code, 0);
  // Its Python alone may take many seconds to begin.
  const Finished finished =
      start_shell(LOCKSTEP_TORCHRUN " --standalone --no_python --nproc_per_node 2 \"$LOCKSTEP\" train " +
                  run_ + " --job.dump_folder " + folder_.path("two"))
          .finish(std::chrono::minutes(4));
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  expect_same_steps("two", "alone");
  const std::string weights = "/model/model.safetensors";
  const std::string expected = read_file(folder_.path("alone") + weights);
  EXPECT_FALSE(expected.empty());
  EXPECT_TRUE(read_file(folder_.path("two") + weights) == expected);
}

}  // namespace
}  // namespace lockstep::testing
