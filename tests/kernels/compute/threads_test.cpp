// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/threads.h"

#include <atomic>
#include <new>

#include <gtest/gtest.h>

namespace lockstep::kernels {
namespace {

TEST(ParallelFor, WhatAnItemThrowsComesWhenAllHaveRun) {
  const int before = threads();
  for (int count : {1, 3}) {
    set_threads(count);
    std::atomic<int> done = 0;
    EXPECT_THROW(parallel_for(10,
                              [&](std::size_t item) {
                                if (item == 9) throw std::bad_alloc();
                                ++done;
                              }),
                 std::bad_alloc);
    EXPECT_EQ(done, 9);
  }
  set_threads(before);
}

}  // namespace
}  // namespace lockstep::kernels
