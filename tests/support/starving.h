// SPDX-License-Identifier: Apache-2.0
//
// For a program whose sources include starving.cpp: all that new gives goes through it.
#pragma once

#include <cstddef>
#include <functional>

namespace lockstep::test {

// What became of a call that had memory for so many allocations.
struct Starved {
  bool ran_out = false;  // it wanted more than that
  bool threw = false;
};

// Only the calling thread has no more.
Starved with_memory_for(std::size_t allocations, const std::function<void()>& call);

}  // namespace lockstep::test
