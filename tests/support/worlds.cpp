// SPDX-License-Identifier: Apache-2.0
#include "tests/support/worlds.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/mesh/range.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/loopback/endpoint.h"
#include "lockstep/transport/routed/endpoint.h"
#include "lockstep/transport/shm/endpoint.h"
#include "lockstep/transport/tcp/endpoint.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

std::string unique_run() {
  return fmt::format("test-{}-{}", ::getpid(), std::random_device{}());
}

// Each rank connects on a thread of its own: connecting waits for the others.
Endpoints connect_all(int world, const std::function<std::unique_ptr<transport::Endpoint>(Rank)>& connect) {
  Endpoints endpoints(static_cast<std::size_t>(world));
  std::vector<std::exception_ptr> errors(endpoints.size());
  {
    std::vector<std::jthread> threads;
    for (Rank rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          endpoints[rank] = connect(rank);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return endpoints;
}

Endpoints make_shm(int world) {
  const std::string run = unique_run();
  return connect_all(
      world, [&](Rank rank) { return transport::connect_shm({.rank = rank, .world = world, .run = run}); });
}

Endpoints make_tcp(int world) {
  const std::string run = unique_run();
  std::vector<transport::Credentials> credentials(static_cast<std::size_t>(world));
  std::vector<std::unique_ptr<transport::Listener>> listeners;
  std::vector<transport::Address> addresses;
  for (Rank rank = 0; rank < world; ++rank) {
    credentials[rank].me = {.role = "tcp", .rank = rank, .run = run, .generation = 0};
    listeners.push_back(std::make_unique<transport::Listener>(
        transport::Address{.host = "127.0.0.1", .port = 0, .unix_name = {}}, credentials[rank]));
    addresses.push_back(listeners.back()->address());
  }
  return connect_all(world, [&](Rank rank) {
    transport::TcpOptions options;
    options.rank = rank;
    options.world = world;
    options.addresses = addresses;
    options.listener = listeners[rank].get();
    options.credentials = credentials[rank];
    return transport::connect_tcp(options, Deadline::after(30s));
  });
}

// The first half of the ranks share one host, the others another.
Endpoints make_routed(int world) {
  Endpoints tcp = make_tcp(world);
  Endpoints whole;
  for (std::size_t host = 0; host < 2; ++host) {
    const Range ranks = chunk_range(static_cast<std::size_t>(world), 2, host);
    Endpoints shm = make_shm(static_cast<int>(ranks.size()));
    for (std::size_t rank = ranks.begin; rank < ranks.end; ++rank) {
      transport::RoutedParts parts;
      parts.rank = static_cast<Rank>(rank);
      for (Rank peer = 0; peer < world; ++peer) {
        const auto index = static_cast<std::size_t>(peer);
        const bool here = ranks.begin <= index && index < ranks.end;
        parts.routes.push_back(
            here ? transport::Route{.part = 0, .rank = static_cast<Rank>(index - ranks.begin)}
                 : transport::Route{.part = 1, .rank = peer});
      }
      parts.parts.push_back(std::move(shm[rank - ranks.begin]));
      parts.parts.push_back(std::move(tcp[rank]));
      whole.push_back(transport::make_routed(std::move(parts)));
    }
  }
  return whole;
}

}  // namespace

std::vector<int> hosts_of_routed(int world) {
  std::vector<int> hosts(static_cast<std::size_t>(world), 0);
  const Range second = chunk_range(hosts.size(), 2, 1);
  std::fill(hosts.begin() + static_cast<std::ptrdiff_t>(second.begin), hosts.end(), 1);
  return hosts;
}

Endpoints make_world(const std::string& transport, int world) {
  if (transport == "loopback") return transport::make_loopback(world);
  if (transport == "shm") return make_shm(world);
  if (transport == "tcp") return make_tcp(world);
  if (transport == "routed") return make_routed(world);
  throw InternalError("no such transport: " + transport);
}

}  // namespace lockstep::test
