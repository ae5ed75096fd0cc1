// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/agreement.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep::train {
namespace {

Hash hash_of_text(std::string_view text) {
  return hash_of(std::as_bytes(std::span(text)));
}

// Ranks 0 and 1 hold one part of a model, 2 and 3 another.
TEST(Agreement, StagesReadDifferentWeights) {
  test::run_ranks(4, [](const comm::Communicator& world) {
    const int part = world.rank() / 2;
    EXPECT_NO_THROW(require_same_first_values(hash_of_text(part == 0 ? "a" : "b"), part, "gpt2", world));
  });
}

TEST(Agreement, RanksThatReadOtherWeightsAreNamed) {
  test::run_ranks(4, [](const comm::Communicator& world) {
    const auto check = [&] {
      require_same_first_values(hash_of_text(world.rank() == 3 ? "a" : "b"), world.rank() / 2, "gpt2", world);
    };
    if (world.rank() > 0) {
      EXPECT_THROW(check(), ToldElsewhere);
    } else {
      EXPECT_EQ(test::error_of<UsageError>(check),
                "rank 3 reads other weights than rank 2: gpt2 must have the same contents on all hosts");
    }
  });
}

}  // namespace
}  // namespace lockstep::train
