// SPDX-License-Identifier: Apache-2.0
//
// Every rank brings three numbers and gets the sums. Needs no libtorch.
//   lockstep launch -n 4 ./all_reduce        prints "rank 0 of 4: 4 8 6" and the same for the others
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "lockstep/base/exit_code.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/connect.h"

int main() try {
  const lockstep::comm::Communicator world = lockstep::comm::connect_from_environment();
  std::vector<float> values = {1, 2, static_cast<float>(world.rank())};
  world.all_reduce(std::as_writable_bytes(std::span(values)));
  std::printf("rank %d of %d: %g %g %g\n", world.rank(), world.size(), values[0], values[1], values[2]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "all_reduce: %s\n", error.what());
  return lockstep::exit_code_of(error);
}
