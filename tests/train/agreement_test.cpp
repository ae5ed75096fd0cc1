// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/agreement.h"

#include <latch>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/failpoint.h"

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

// As a coordinator ends the world of all when one has left: who has not heard why would go on with the rest.
TEST(Agreement, NobodyRaisesAMistakeBeforeAllKnowOfIt) {
  constexpr int kWorld = 3;
  std::mutex mutex;
  std::vector<comm::Communicator> worlds;
  std::latch all_are_there(kWorld);
  failpoint::arm("comm.operation.middle@hit=3:sleep(200)");  // whoever of them comes last
  test::run_ranks(kWorld, [&](const comm::Communicator& world) {
    {
      const std::lock_guard lock(mutex);
      worlds.push_back(world);
    }
    all_are_there.arrive_and_wait();
    const auto fail = [&] { together(world, [] { throw UsageError("a mistake"); }); };
    if (world.rank() == 0) {
      EXPECT_EQ(test::error_of<UsageError>(fail), "a mistake");
    } else {
      EXPECT_THROW(fail(), ToldElsewhere);
    }
    for (const comm::Communicator& other : worlds) other.abort("a rank has left");
  });
  failpoint::arm("");
}

}  // namespace
}  // namespace lockstep::train
