// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/connect.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/suggest.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/loopback/endpoint.h"
#include "lockstep/transport/mpi/endpoint.h"
#include "lockstep/transport/routed/endpoint.h"
#include "lockstep/transport/shm/endpoint.h"
#include "lockstep/transport/tcp/endpoint.h"

namespace lockstep::comm {
namespace {

using rendezvous::PeerTable;
using rendezvous::Placement;
using transport::Endpoint;

transport::Credentials credentials_for(const Placement& placement, std::string role) {
  return {.me = {.role = std::move(role),
                 .rank = placement.rank.value,
                 .run = placement.run.value,
                 .generation = placement.generation.value},
          .secret = transport::Secret::from_environment(),
          .tls = transport::tls_from_environment()};
}

// By rank: a number for its host, in the order of appearance.
std::vector<int> host_numbers(const PeerTable& table) {
  std::vector<int> numbers(static_cast<std::size_t>(table.world()));
  const auto hosts = hosts_of(table);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (Rank rank : hosts[host]) numbers[static_cast<std::size_t>(rank)] = static_cast<int>(host);
  }
  return numbers;
}

std::vector<Rank> ranks_beside(const PeerTable& table, Rank me) {
  const auto hosts = hosts_of(table);
  return *std::find_if(hosts.begin(), hosts.end(), [me](const std::vector<Rank>& ranks) {
    return std::find(ranks.begin(), ranks.end(), me) != ranks.end();
  });
}

std::unique_ptr<Endpoint> shm_among(const std::vector<Rank>& ranks, const PeerTable& table,
                                    const Placement& placement, const transport::Secret& secret,
                                    Deadline deadline, const std::stop_token& stop) {
  const auto me = std::find(ranks.begin(), ranks.end(), placement.rank.value);
  return transport::connect_shm({.rank = static_cast<Rank>(me - ranks.begin()),
                                 .world = static_cast<int>(ranks.size()),
                                 .run = fmt::format("{}-{}", table.nonce, ranks.front()),
                                 .generation = placement.generation.value,
                                 .secret = secret,
                                 .deadline = deadline,
                                 .stop = stop});
}

std::unique_ptr<Endpoint> tcp_among_all(const PeerTable& table, const Placement& placement,
                                        transport::Listener& listener, transport::Credentials credentials,
                                        const ConnectOptions& how, Deadline deadline) {
  transport::TcpOptions options;
  options.rank = placement.rank.value;
  options.world = table.world();
  options.listener = &listener;
  options.credentials = std::move(credentials);
  options.streams_per_peer = how.tcp_streams;
  options.stop = how.stop;
  for (const rendezvous::Peer& peer : table.peers)
    options.addresses.push_back(transport::parse_address(peer.tcp_address));
  return transport::connect_tcp(options, deadline);
}

// Shm for the ranks beside us, tcp for the others.
std::unique_ptr<Endpoint> route(std::unique_ptr<Endpoint> shm, const std::vector<Rank>& beside,
                                std::unique_ptr<Endpoint> tcp) {
  transport::RoutedParts whole;
  whole.rank = tcp->rank();
  for (Rank rank = 0; rank < tcp->world(); ++rank) whole.routes.push_back({.part = 1, .rank = rank});
  for (std::size_t i = 0; i < beside.size(); ++i) {
    whole.routes[static_cast<std::size_t>(beside[i])] = {.part = 0, .rank = static_cast<Rank>(i)};
  }
  whole.parts.push_back(std::move(shm));
  whole.parts.push_back(std::move(tcp));
  return transport::make_routed(std::move(whole));
}

// Nobody is nearer than anybody else.
std::vector<int> all_apart(int world) {
  std::vector<int> hosts(static_cast<std::size_t>(world));
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

Communicator connect_over_mpi(GroupSettings group) {
  std::unique_ptr<Endpoint> endpoint = transport::make_mpi_endpoint();
  group.hosts = all_apart(endpoint->world());
  group.links = over_mpi(group.links);
  return Communicator(std::move(endpoint), std::move(group));
}

}  // namespace

std::string_view name_of(Carrier carrier) {
  switch (carrier) {
    case Carrier::automatic:
      return "auto";
    case Carrier::shm:
      return "shm";
    case Carrier::tcp:
      return "tcp";
    case Carrier::mpi:
      return "mpi";
  }
  return "unknown";
}

Carrier parse_carrier(std::string_view name) {
  std::vector<std::string> known;
  for (Carrier carrier : {Carrier::automatic, Carrier::shm, Carrier::tcp, Carrier::mpi}) {
    if (name == name_of(carrier)) return carrier;
    known.emplace_back(name_of(carrier));
  }
  refuse_name("transport", name, known);
}

// Measured once for a kind of machine, the model is a matter of where a program runs, not of the program.
LinkModel links_from_environment(const LinkModel& otherwise) {
  const rendezvous::Environment environment = rendezvous::process_environment();
  const auto file = environment.find("LOCKSTEP_LINK_MODEL");
  return file != environment.end() && !file->second.empty() ? load_link_model(file->second) : otherwise;
}

Communicator connect(const Placement& placement, const ConnectOptions& options) {
  GroupSettings group = options.group;
  group.links = links_from_environment(group.links);
  if (options.carrier == Carrier::mpi) return connect_over_mpi(std::move(group));
  if (placement.world.value == 1)
    return Communicator(std::move(transport::make_loopback(1).front()), std::move(group));

  const Deadline deadline = Deadline::after(placement.timeout.value);
  transport::Credentials credentials = credentials_for(placement, "tcp");
  const std::string host = rendezvous::route_address(placement, deadline);
  transport::Listener listener({.host = host, .port = 0, .unix_name = {}}, credentials);
  const PeerTable table = rendezvous::rendezvous(placement, credentials.secret,
                                                 {.tcp_address = listener.address().to_string(),
                                                  .digest = {},
                                                  .tls = credentials.tls,
                                                  .stop = options.stop},
                                                 deadline);

  const std::vector<Rank> beside = ranks_beside(table, placement.rank.value);
  const bool one_host = static_cast<int>(beside.size()) == table.world();
  if (options.carrier == Carrier::shm && !one_host) {
    throw UsageError(fmt::format(
        "transport shm needs all ranks on one host, but {} is on another one than {}: use auto or tcp",
        table.peers[0].to_string(), table.peers.back().to_string()));
  }
  group.hosts = host_numbers(table);
  // Over sockets alone, ranks of one host are as far apart as any others.
  group.hosts_are_near = options.carrier != Carrier::tcp;

  std::unique_ptr<Endpoint> shm;
  std::unique_ptr<Endpoint> tcp;
  if (options.carrier != Carrier::tcp && beside.size() > 1) {
    shm = shm_among(beside, table, placement, credentials.secret, deadline, options.stop);
  }
  if (!shm || !one_host) {
    tcp = tcp_among_all(table, placement, listener, std::move(credentials), options, deadline);
  }
  if (shm && tcp) return Communicator(route(std::move(shm), beside, std::move(tcp)), group);
  return Communicator(shm ? std::move(shm) : std::move(tcp), group);
}

Communicator connect_from_environment(const ConnectOptions& options) {
  rendezvous::PlacementInputs inputs;
  inputs.environment = rendezvous::process_environment();
  inputs.detected_host_id = rendezvous::detect_host_id();
  return connect(resolve_placement(inputs), options);
}

}  // namespace lockstep::comm
