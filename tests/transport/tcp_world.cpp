// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/tcp_world.h"

#include <chrono>
#include <future>

#include "lockstep/transport/tcp/endpoint.h"

#include "tests/support/credentials.h"

namespace lockstep::transport {

std::vector<std::unique_ptr<Endpoint>> make_tcp_world(int world, int streams_per_peer,
                                                      std::shared_ptr<TlsContext> tls) {
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<Address> addresses;
  for (Rank rank = 0; rank < world; ++rank) {
    const Address any_port{.host = "127.0.0.1", .port = 0, .unix_name = {}};
    listeners.push_back(std::make_unique<Listener>(any_port, test::credentials(rank, {.tls = tls})));
    addresses.push_back(listeners.back()->address());
  }
  std::vector<std::future<std::unique_ptr<Endpoint>>> connecting;
  for (Rank rank = 0; rank < world; ++rank) {
    const TcpOptions options{.rank = rank,
                             .world = world,
                             .addresses = addresses,
                             .listener = listeners[rank].get(),
                             .credentials = test::credentials(rank, {.tls = tls}),
                             .streams_per_peer = streams_per_peer};
    connecting.push_back(std::async(std::launch::async, [options] {
      return connect_tcp(options, Deadline::after(std::chrono::seconds(30)));
    }));
  }
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (auto& one : connecting) endpoints.push_back(one.get());
  return endpoints;
}

}  // namespace lockstep::transport
