// SPDX-License-Identifier: Apache-2.0
//
// What a project that uses the library may be like: a world of one, and a world of two ranks as threads.
#include <cstdio>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace {

using lockstep::comm::Communicator;

std::vector<float> sum_of_ranks(const Communicator& world, std::vector<float> values) {
  world.all_reduce(std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

int main() {
  const std::vector<float> alone = sum_of_ranks(Communicator(), {1.0F, 2.0F, 3.0F});

  auto endpoints = lockstep::transport::make_loopback(2);
  std::vector<std::vector<float>> together(2);
  {
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        const Communicator world(std::move(endpoints[rank]));
        together[rank] = sum_of_ranks(world, {1.0F, 10.0F * static_cast<float>(world.rank()), 0.5F});
      });
    }
  }

  const std::vector<float> expected = {2.0F, 10.0F, 1.0F};
  const bool right =
      alone == std::vector<float>{1.0F, 2.0F, 3.0F} && together[0] == expected && together[1] == expected;
  std::puts(right ? "consumer: right" : "consumer: WRONG");
  return right ? 0 : 1;
}
