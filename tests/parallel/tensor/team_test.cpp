// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/team.h"

#include <latch>
#include <stdexcept>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/ranks.h"

namespace lockstep::parallel {
namespace {

TEST(TensorTeam, SumsUnderWayAreForAllForEachItsRowsOrForOne) {
  test::run_ranks(4, [](comm::Communicator& group) {
    const TensorTeam team(group, {.lanes = 8});
    const at::Tensor all = at::full({4, 3}, group.rank() + 1.0);
    const at::Tensor rows = all.clone(), one = all.clone();
    const auto first = team.start_all_reduce(all);
    const auto second = team.start_reduce_scatter(rows);
    const auto third = team.start_reduce(one, 5);  // computed by rank 2
    third->wait();
    first->wait();
    second->wait();
    EXPECT_TRUE(all.eq(10).all().item<bool>());
    EXPECT_TRUE(rows[group.rank()].eq(10).all().item<bool>());
    EXPECT_TRUE(group.rank() != 2 || one.eq(10).all().item<bool>());
  });
}

TEST(TensorTeam, ASumWithoutElementsIsOneToo) {
  test::run_ranks(2, [](comm::Communicator& group) {
    const TensorTeam team(group, {.lanes = 2});
    EXPECT_NO_THROW(team.start_reduce(at::ones({0, 3}), 1)->wait());
    EXPECT_NO_THROW(team.start_all_reduce(at::ones({0, 3}))->wait());
  });
}

TEST(TensorTeam, AnExceptionEndsTheSumsUnderWayEverywhere) {
  std::latch left(1);
  test::run_ranks(2, [&](comm::Communicator& group) {
    const TensorTeam team(group, {.lanes = 2});
    const auto leave_in_the_middle = [&] {
      const auto first = team.start_all_reduce(at::ones({100'000}));
      const auto second = team.start_reduce(at::ones({100'000}), 1);
      throw std::runtime_error("a product failed");
    };
    if (group.rank() == 0) {
      EXPECT_THROW(leave_in_the_middle(), std::runtime_error);
      left.count_down();
    }
    left.wait();
    EXPECT_THROW(team.start_all_reduce(at::ones({100'000}))->wait(), Aborted) << "rank " << group.rank();
  });
}

}  // namespace
}  // namespace lockstep::parallel
