// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads of the test process.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::test {

using Endpoints = std::vector<std::unique_ptr<transport::Endpoint>>;

// Runs `body` for each rank, each on its own thread and with its own endpoint; rethrows the first exception
// (by rank) after all have ended.
inline void run_ranks(Endpoints endpoints, const comm::GroupSettings& settings,
                      const std::function<void(comm::Communicator&)>& body) {
  std::vector<std::exception_ptr> errors(endpoints.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          comm::Communicator communicator(std::move(endpoints[rank]), settings);
          body(communicator);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

inline void run_ranks(int world, const std::function<void(comm::Communicator&)>& body) {
  run_ranks(transport::make_loopback(world), {}, body);
}

}  // namespace lockstep::test
