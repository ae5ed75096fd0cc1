// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli/train_program.h"

namespace lockstep::testing {

using Flags = std::vector<std::string>;

// Runs on several workers that are compared with one process.
class LayoutProgram : public TrainProgram {
 protected:
  // A run with these flags and files of its own. One thread each: more have no work in models so small.
  Finished train_as(const std::string& run, Flags flags) {
    flags.insert(flags.end(), {"--training.threads", "1", "--job.dump_folder", folder_.path(run)});
    return train(std::move(flags));
  }

  std::string model_of(const std::string& run) {
    return read_file(folder_.path(run) + "/model/model.safetensors");
  }

  void expect_same_runs(const std::string& run, const std::string& expected) {
    expect_same_steps(run, expected);
    EXPECT_TRUE(model_of(run) == model_of(expected)) << run << " has other weights than " << expected;
  }

  // Who loads the models hears the same of them.
  void expect_same_words(const std::string& run, const std::string& expected) {
    for (const Flags& command :
         {Flags{"eval", "MODEL", "--data", folder_.path("corpus"), "--sequences", "4"},
          Flags{"generate", "MODEL", "--prompt", "line 1", "--max-tokens", "8", "--seed", "3"}}) {
      const auto said = [&](const std::string& who) {
        Flags arguments = command;
        arguments[1] = folder_.path(who) + "/model";
        const Finished finished = run_program(arguments);
        EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
        return finished.output;
      };
      EXPECT_EQ(said(run), said(expected));
    }
  }

  // As pgrep finds the workers of a run.
  std::string workers_of(const std::string& run) {
    return "pgrep -f '[l]ockstep-trainer train.*" + folder_.path(run) + "'";
  }

  // Ends the run by a signal to its last worker.
  Finished signal_the_last_worker(Flags flags, const std::string& run, const std::string& signal) {
    flags.insert(flags.begin(), {"train", run_});
    flags.insert(flags.end(), {"--training.threads", "1", "--training.steps", "1000000", "--elastic.enabled",
                               "false", "--job.dump_folder", folder_.path(run)});
    Program program(flags);
    wait_for_a_step(run);
    EXPECT_EQ(run_shell("kill -" + signal + " $(" + workers_of(run) + " | tail -n 1)").exit_code, 0);
    const Finished finished = program.finish();
    EXPECT_EQ(run_shell(workers_of(run)).output, "") << "nothing is left running";
    return finished;
  }
};

}  // namespace lockstep::testing
