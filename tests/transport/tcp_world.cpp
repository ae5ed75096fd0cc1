// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/tcp_world.h"

#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "lockstep/transport/tcp/endpoint.h"
#include "lockstep/transport/tcp/limits.h"

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

void fill_socket(Endpoint& from, Rank to, const std::vector<std::byte>& payload) {
  const std::size_t each = tcp::kEagerBudget / (payload.size() + tcp::kEagerOverhead);
  for (StreamId stream = 0; stream < kMaxStreams; ++stream) {
    for (std::size_t i = 0; i < each; ++i) from.channel(to, stream).send({1, 1}, payload);
  }
  const auto written = [&] {
    std::uint64_t messages = 0;
    for (StreamId stream = 0; stream < kMaxStreams; ++stream)
      messages += from.channel(to, stream).sends_done();
    return messages;
  };
  // The system goes on moving bytes for a while after the first refusal: it delays acknowledgements.
  std::uint64_t before = 0;
  for (int quiet = 0; quiet < 100; ++quiet) {
    for (int i = 0; i < 200; ++i) from.channel(to, 0).pump();
    if (written() != before) quiet = 0;
    before = written();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_LT(before, each * kMaxStreams) << "the system takes everything";
}

}  // namespace lockstep::transport
