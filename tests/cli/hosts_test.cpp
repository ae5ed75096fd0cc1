// SPDX-License-Identifier: Apache-2.0
//
// Runs on several hosts, which are launchers with other host ids: their ranks meet over sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/train_program.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

class TwoHosts : public TrainProgram {
 protected:
  // What the first host says of a run with so many workers on each.
  Finished train_on_both(const std::vector<std::string>& workers, const std::vector<std::string>& flags) {
    const std::string hosts =
        folder_.write("hosts", "127.0.0.1 slots=" + workers[0] + "\nother slots=" + workers[1] + "\n");
    const std::string port = std::to_string(free_port());
    const auto host = [&](const std::string& number) {
      std::vector<std::string> arguments = {
          "launch", "--hostfile",     hosts,   "--node-rank", number, "--master-port",
          port,     LOCKSTEP_PROGRAM, "train", run_};
      arguments.insert(arguments.end(), flags.begin(), flags.end());
      return Program(arguments, {{"LOCKSTEP_SECRET", "a secret for two launchers"},
                                 {"LOCKSTEP_HOST_ID", "host" + number}});
    };
    Program second = host("1");
    Program first = host("0");
    Finished finished = first.finish();
    second.finish();
    return finished;
  }
};

TEST_F(TwoHosts, ACopyOnEachGivesTheBitsOfOneProcess) {
  ASSERT_EQ(train({"--job.dump_folder", folder_.path("alone")}).exit_code, 0);
  const Finished finished =
      train_on_both({"2", "2"}, {"--parallelism.zero_stage", "3", "--parallelism.zero_scope", "host",
                                 "--job.dump_folder", folder_.path("shared")});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  expect_same_steps("shared", "alone");
  EXPECT_TRUE(read_file(folder_.path("shared") + "/model/model.safetensors") ==
              read_file(folder_.path("alone") + "/model/model.safetensors"));
}

TEST_F(TwoHosts, WithOtherNumbersOfWorkersAreRefused) {
  const Finished finished = train_on_both(
      {"1", "2"}, {"--parallelism.zero_scope", "host", "--job.dump_folder", folder_.path("uneven")});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.error_output,
              HasSubstr("ranks 0, 1, 2 are 1 + 2 on 2 hosts: start as many workers on every host"));
}

}  // namespace
}  // namespace lockstep::testing
