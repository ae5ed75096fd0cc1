// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/shm_world.h"

#include <exception>
#include <random>
#include <thread>

#include <unistd.h>

#include "lockstep/transport/shm/endpoint.h"

namespace lockstep::transport {

std::string unique_run() {
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device{}());
}

std::vector<std::unique_ptr<Endpoint>> make_shm_world(int world) {
  const std::string run = unique_run();
  std::vector<std::unique_ptr<Endpoint>> endpoints(static_cast<std::size_t>(world));
  std::vector<std::exception_ptr> errors(endpoints.size());
  std::vector<std::jthread> threads;
  for (Rank rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        endpoints[rank] = connect_shm({.rank = rank, .world = world, .run = run});
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::jthread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return endpoints;
}

}  // namespace lockstep::transport
