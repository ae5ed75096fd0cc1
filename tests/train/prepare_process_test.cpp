// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/train/run.h"

namespace lockstep::train {
namespace {

int threads_after(std::int64_t key, int environment, int local_ranks) {
  spec::Training training;
  training.threads = key;
  prepare_process(training, environment, local_ranks);
  return kernels::threads();
}

TEST(PrepareProcess, TakesThreadsFromTheKeyThenTheEnvironmentThenTheCores) {
  const int cores = usable_cores();
  EXPECT_EQ(threads_after(0, 0, 1), cores);
  EXPECT_EQ(threads_after(0, 0, 1000), 1);
  EXPECT_EQ(threads_after(0, 1, 1), 1);
  EXPECT_EQ(threads_after(0, 100'000, 1), cores);
  EXPECT_EQ(threads_after(1, cores, 1), 1);
  EXPECT_THROW(threads_after(100'000, 1, 1), UsageError);
}

}  // namespace
}  // namespace lockstep::train
