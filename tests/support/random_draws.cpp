// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_draws.h"

#include <cstddef>

#include <openssl/rand.h>

extern "C" int RAND_bytes(unsigned char* buffer, int count) {
  if (lockstep::test::random_draws_left-- <= 0) return 0;
  return RAND_bytes_ex(nullptr, buffer, static_cast<std::size_t>(count), 0);
}
