// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/threads.h"

#include <algorithm>

#include <omp.h>

namespace lockstep::kernels {

void set_threads(int count) {
  omp_set_num_threads(std::max(1, count));
}

int threads() {
  return omp_get_max_threads();
}

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (count <= 1 || threads() == 1 || omp_in_parallel() != 0) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < count; ++i) body(i);
}

}  // namespace lockstep::kernels
