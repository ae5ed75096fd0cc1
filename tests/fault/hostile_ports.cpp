// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/hostile_ports.h"

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/connect.h"
#include "lockstep/elastic/membership.h"
#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/rendezvous/server.h"
#include "lockstep/transport/shm/endpoint.h"
#include "lockstep/transport/tcp/endpoint.h"

#include "tests/elastic/served_coordinator.h"
#include "tests/support/files.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/strangers.h"
#include "tests/transport/certificates.h"
#include "tests/transport/shm_world.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using transport::Address;
using transport::Credentials;

constexpr const char* kSecret = "a secret that no stranger knows";

Address any_port() {
  return {.host = "127.0.0.1", .port = 0, .unix_name = {}};
}

Credentials credentials_of(std::string role, Rank rank, std::string run = "attacked") {
  return {.me = {.role = std::move(role), .rank = rank, .run = std::move(run), .generation = 0},
          .secret = transport::Secret::from_value(kSecret),
          .tls = nullptr};
}

float sum_with(const comm::Communicator& world) {
  std::array<float, 1> value{static_cast<float>(world.rank() + 1)};
  world.all_reduce(std::as_writable_bytes(std::span(value)));
  return value[0];
}

// The server of a rendezvous, in a thread of its own as a launcher has it.
class Served {
 public:
  explicit Served(int world, std::shared_ptr<transport::TlsContext> tls = nullptr)
      : tls_(std::move(tls)),
        server_({.listen = any_port(),
                 .world = world,
                 .run = "attacked",
                 .generation = 0,
                 .secret = transport::Secret::from_value(kSecret),
                 .tls = tls_}),
        thread_([this](const std::stop_token& stop) { server_.serve(Deadline::after(120s), stop); }) {}

  const Address& address() const { return server_.address(); }

  rendezvous::Placement placement_of(Rank rank, int world) const {
    rendezvous::Placement placement;
    placement.rank.value = rank;
    placement.world.value = world;
    placement.master_host.value = address().host;
    placement.master_port.value = address().port;
    placement.served_by_rank0.value = false;
    placement.run.value = "attacked";
    placement.host_id.value = "here";
    placement.timeout.value = 120s;
    return placement;
  }

  rendezvous::PeerTable meet(Rank rank, int world, const std::string& tcp_address) const {
    return rendezvous::rendezvous(placement_of(rank, world), transport::Secret::from_value(kSecret),
                                  {.tcp_address = tcp_address, .digest = {}, .tls = tls_},
                                  Deadline::after(120s));
  }

 private:
  std::shared_ptr<transport::TlsContext> tls_;  // null: plain
  rendezvous::Server server_;
  std::jthread thread_;
};

class RendezvousPort final : public AttackedPort {
 public:
  explicit RendezvousPort(std::shared_ptr<transport::TlsContext> tls = nullptr)
      : tls_(std::move(tls)), served_(kWorld, tls_) {}

  Address address() const override { return served_.address(); }
  Credentials welcome() const override {
    Credentials welcome = credentials_of("rendezvous", 1);
    welcome.tls = tls_;
    return welcome;
  }

  void expect_the_honest_are_served() override {
    std::vector<std::future<rendezvous::PeerTable>> ranks;
    for (Rank rank = 0; rank < kWorld; ++rank) {
      ranks.push_back(std::async(std::launch::async, [this, rank] {
        return served_.meet(rank, kWorld, "127.0.0.1:" + std::to_string(1000 + rank));
      }));
    }
    for (auto& rank : ranks) EXPECT_EQ(rank.get().peers[2].tcp_address, "127.0.0.1:1002");
  }

 private:
  static constexpr int kWorld = 3;
  std::shared_ptr<transport::TlsContext> tls_;
  Served served_;
};

class RankPort final : public AttackedPort {
 public:
  RankPort() {
    for (Rank rank = 0; rank < kMe; ++rank) {
      others_.push_back(std::async(std::launch::async, [this, rank] {
        return sum_with(comm::connect(served_.placement_of(rank, kWorld), {.carrier = comm::Carrier::tcp}));
      }));
    }
    table_ = served_.meet(kMe, kWorld, listener_.address().to_string());
  }

  Address address() const override { return transport::parse_address(table_.peers[0].tcp_address); }
  Credentials welcome() const override { return credentials_of("tcp", kMe); }

  void expect_the_honest_are_served() override {
    transport::TcpOptions options;
    options.rank = kMe;
    options.world = kWorld;
    options.listener = &listener_;
    options.credentials = welcome();
    for (const rendezvous::Peer& peer : table_.peers) {
      options.addresses.push_back(transport::parse_address(peer.tcp_address));
    }
    EXPECT_EQ(sum_with(comm::Communicator(transport::connect_tcp(options, Deadline::after(120s)), {})), 6);
    for (auto& other : others_) EXPECT_EQ(other.get(), 6);
  }

 private:
  static constexpr int kWorld = 3;
  static constexpr Rank kMe = 2;

  const ScopedVariable secret_{"LOCKSTEP_SECRET", kSecret};
  Served served_{kWorld};
  transport::Listener listener_{any_port(), credentials_of("tcp", kMe)};
  rendezvous::PeerTable table_;
  std::vector<std::future<float>> others_;  // the last: they use the others
};

class ShmPort final : public AttackedPort {
 public:
  ShmPort() {
    for (Rank rank = 0; rank < kMe; ++rank) {
      others_.push_back(std::async(std::launch::async, [this, rank] { return sum_as(rank); }));
    }
    transport::dial(address(), welcome(), soon());  // rank 0 is there
  }

  Address address() const override {
    return {.host = {}, .port = 0, .unix_name = "lockstep/" + run_ + "/0/0"};
  }
  // Rank 0 itself: it may prove that it knows the secret, and is then let go.
  Credentials welcome() const override { return credentials_of("shm", 0, run_); }

  void expect_the_honest_are_served() override {
    EXPECT_EQ(sum_as(kMe), 6);
    for (auto& other : others_) EXPECT_EQ(other.get(), 6);
  }

 private:
  static constexpr int kWorld = 3;
  static constexpr Rank kMe = 2;

  float sum_as(Rank rank) const {
    return sum_with(
        comm::Communicator(transport::connect_shm({.rank = rank,
                                                   .world = kWorld,
                                                   .run = run_,
                                                   .secret = transport::Secret::from_value(kSecret),
                                                   .deadline = Deadline::after(120s)}),
                           {}));
  }

  const std::string run_ = transport::unique_run();
  std::vector<std::future<float>> others_;  // the last: they use the others
};

class CoordinatorPort final : public AttackedPort {
 public:
  Address address() const override { return server_.address(); }
  Credentials welcome() const override { return credentials_of("elastic", -1); }

  void expect_the_honest_are_served() override {
    elastic::Membership::Options options;
    options.coordinator = address();
    options.credentials = welcome();
    options.host = "here";
    elastic::Membership member(options);
    member.take_place({}, "new");
    member.begun(0);
    for (std::int64_t step = 1; step <= 20; ++step) EXPECT_EQ(member.vote(step).step, step);
  }

 private:
  elastic::CoordinatorServer::Options options() const {
    elastic::CoordinatorOptions coordinator;
    coordinator.expected = 1;
    coordinator.max_members = 1;
    return {.listen = any_port(),
            .credentials = welcome(),
            .coordinator = coordinator,
            .log_path = folder_.path("decisions")};
  }

  TemporaryFolder folder_;
  elastic::ServedCoordinator server_{options()};
};

}  // namespace

std::unique_ptr<AttackedPort> make_rendezvous_port() {
  return std::make_unique<RendezvousPort>();
}

std::unique_ptr<AttackedPort> make_tls_port() {
  const TemporaryFolder certificates;
  return std::make_unique<RendezvousPort>(
      transport::load_tls(transport::Authority("ours").issue(certificates, "rank")));
}

std::unique_ptr<AttackedPort> make_rank_port() {
  return std::make_unique<RankPort>();
}

std::unique_ptr<AttackedPort> make_shm_port() {
  return std::make_unique<ShmPort>();
}

std::unique_ptr<AttackedPort> make_coordinator_port() {
  return std::make_unique<CoordinatorPort>();
}

}  // namespace lockstep::test
