// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/threads.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include <omp.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace lockstep::kernels {
namespace {

// The thread sanitizer does not see how libgomp starts and joins threads. Told here, it finds races between
// the items of a loop, and takes none of them for a race with what comes before or after the loop.
class Region {
 public:
#ifdef __SANITIZE_THREAD__
  void fork() {
    __tsan_release(&forked_);
  }
  void join() {
    __tsan_acquire(&joined_);
  }
  void enter() {
    __tsan_acquire(&forked_);
  }
  void leave() {
    __tsan_release(&joined_);
  }

 private:
  char forked_ = 0;
  char joined_ = 0;
#else
  void fork() {}
  void join() {}
  void enter() {}
  void leave() {}
#endif
};

// What must not leave a thread of OpenMP's.
class FirstError {
 public:
  void keep() {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

void run_item(Region& region, FirstError& error, const std::function<void(std::size_t)>& body,
              std::size_t item) {
  region.enter();
  try {
    body(item);
  } catch (...) {
    error.keep();
  }
  region.leave();
}

}  // namespace

void set_threads(int count) {
  omp_set_num_threads(std::max(1, count));
}

int threads() {
  return omp_get_max_threads();
}

// Not looked at by the thread sanitizer itself, for its threads read the arguments before run_item() begins.
__attribute__((no_sanitize("thread"))) void parallel_for(std::size_t count,
                                                         const std::function<void(std::size_t)>& body) {
  if (count <= 1 || threads() == 1 || omp_in_parallel() != 0) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  Region region;
  FirstError error;
  region.fork();
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < count; ++i) run_item(region, error, body, i);
  region.join();
  error.rethrow();
}

}  // namespace lockstep::kernels
