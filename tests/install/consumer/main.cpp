// SPDX-License-Identifier: Apache-2.0
//
// What a project that uses the library may be like: a world of one adds its numbers up.
#include <cstdio>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"

int main() {
  const lockstep::comm::Communicator world;
  std::vector<float> values = {1.0F, 2.0F, 3.0F};
  world.all_reduce(std::as_writable_bytes(std::span(values)));
  const bool right = world.size() == 1 && values == std::vector<float>{1.0F, 2.0F, 3.0F};
  std::puts(right ? "consumer: a world of one keeps its values" : "consumer: WRONG");
  return right ? 0 : 1;
}
