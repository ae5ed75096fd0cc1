// SPDX-License-Identifier: Apache-2.0
//
// Places at which a process can be told to die, stop, wait or fail, for tests of what the others and the
// next start make of it. Nothing is armed unless whoever starts the process says so in its environment; a
// point that is passed then costs one relaxed load.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lockstep/base/bytes.h"
#include "lockstep/base/failpoint_table.h"

namespace lockstep::failpoint {

inline constexpr const char* kVariable = "LOCKSTEP_FAILPOINTS";

// False in programs built with LOCKSTEP_FAILPOINTS=OFF, which have no points.
#ifdef LOCKSTEP_NO_FAILPOINTS
inline constexpr bool kAreBuilt = false;
#else
inline constexpr bool kAreBuilt = true;
#endif

// Arms what a specification says (failpoint_rule.h), in place of what was armed before; nothing when it is
// empty. UsageError for a bad one, and for any in a program that has no points. Thread-safe, as all here.
void arm(std::string_view specification);

// The same with the variable LOCKSTEP_FAILPOINTS; a warning tells when anything is armed. For the main
// function of a program.
void arm_from_environment();

// What rules are compared with: this process's rank in the world, and the step that it trains. Unknown until
// set, and then no rule that asks for one holds.
void set_rank(int rank);
void set_step(std::int64_t step);

// --- For the macro only.
extern std::atomic<bool> is_armed;
void pass(std::size_t point, Bytes values = {});

}  // namespace lockstep::failpoint

// Does what was armed for `name`, which is in the table or this does not compile. What it may throw:
// InternalError, and UsageError where the point is one of a disk.
#define LOCKSTEP_FAILPOINT(name) LOCKSTEP_FAILPOINT_VALUES(name, ::lockstep::Bytes())

// The same where there are values that can be changed: `values` are bytes, and looked at only when the point
// is armed.
#define LOCKSTEP_FAILPOINT_VALUES(name, values)                                                   \
  do {                                                                                            \
    static_assert(::lockstep::failpoint::is_known(name), "not in base/failpoint_table.h");        \
    if constexpr (::lockstep::failpoint::kAreBuilt) {                                             \
      if (::lockstep::failpoint::is_armed.load(::std::memory_order_relaxed)) [[unlikely]] {       \
        constexpr ::std::size_t lockstep_failpoint_index = ::lockstep::failpoint::index_of(name); \
        ::lockstep::failpoint::pass(lockstep_failpoint_index, values);                            \
      }                                                                                           \
    }                                                                                             \
  } while (false)
