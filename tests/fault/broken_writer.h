// SPDX-License-Identifier: Apache-2.0
//
// checkpoint_writer as a child process that saves over a good checkpoint and is broken on the way.
#pragma once

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/fault/saved_variant.h"
#include "tests/support/files.h"

namespace lockstep::testing {

class BrokenWriter : public ::testing::Test {
 protected:
  static constexpr int kOld = 1;  // variants
  static constexpr int kNew = 2;
  static constexpr int kLater = 3;
  static constexpr int kOldStep = 10;
  static constexpr int kKilled = 128 + 9;  // how a shell reports it

  // Checkpoints of `rows` rows, 8 KiB each.
  explicit BrokenWriter(int rows) : rows_(rows) {
    EXPECT_EQ(run_program(arguments(folder_.path("good"), kOldStep, kOld)).exit_code, 0);
  }

  std::string store() const { return folder_.path("s"); }
  std::vector<std::string> arguments(const std::string& folder, int step, int variant) const {
    return {folder, std::to_string(step), std::to_string(variant), std::to_string(rows_)};
  }
  // From now on the store has the old checkpoint and nothing else.
  void begin_anew() const {
    std::filesystem::remove_all(store());
    std::filesystem::copy(folder_.path("good"), store(), std::filesystem::copy_options::recursive);
  }
  std::vector<std::string> names() const { return test::names_in(store()); }
  int newest() const { return checkpoint::testing::newest_variant(store()); }

  // Whatever has happened, the next run can save, and leaves nothing else.
  void expect_a_later_save() const {
    const Finished later = run_program(arguments(store(), 30, kLater));
    EXPECT_EQ(later.exit_code, 0) << later.error_output;
    EXPECT_EQ(newest(), kLater);
    EXPECT_THAT(names(), ::testing::UnorderedElementsAre("step-30", "latest"));
  }

  test::TemporaryFolder folder_;

 private:
  int rows_;
};

}  // namespace lockstep::testing
