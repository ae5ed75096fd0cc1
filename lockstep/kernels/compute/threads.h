// SPDX-License-Identifier: Apache-2.0
//
// The one pool of threads that kernels share (OpenMP's, which libtorch and oneDNN use as well).
#pragma once

#include <cstddef>
#include <functional>

namespace lockstep::kernels {

// How many threads kernels called from this thread use, at least 1. Affects OpenMP code of other libraries
// called from this thread too.
void set_threads(int count);
int threads();

// While it lives, kernels called from this thread use no other one, and start none.
class OneThread {
 public:
  OneThread() : before_(threads()) { set_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { set_threads(before_); }

 private:
  int before_;
};

// Runs body(0) .. body(count - 1), each once, in any order and on any thread; returns when all have run.
// Results must not depend on the order: an item writes only what is its own. What an item throws, the first
// of several, is rethrown when all have run.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace lockstep::kernels
