// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <climits>

namespace lockstep::test {

// How often the system still gives random bytes to this process; random_draws.cpp takes the place of
// OpenSSL's RAND_bytes(), so that whoever needs some can fail in the middle of its work.
inline std::atomic<int> random_draws_left{INT_MAX};

}  // namespace lockstep::test
