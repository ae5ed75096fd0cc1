// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/train/memory.h"
#include "lockstep/train/run.h"

namespace lockstep::train {

void prepare_process(const spec::Training& training, int asked_threads, int local_ranks) {
  const int share = std::max(1, usable_cores() / std::max(1, local_ranks));
  const int usual = asked_threads > 0 ? std::min(asked_threads, usable_cores()) : share;
  if (training.threads > usable_cores()) {
    throw UsageError(fmt::format("training.threads = {} is more than the {} cores that this process may use",
                                 training.threads, usable_cores()));
  }
  const int count = training.threads > 0 ? static_cast<int>(training.threads) : usual;
  at::set_num_threads(count);
  kernels::set_threads(count);
  keep_freed_memory();
}

}  // namespace lockstep::train
