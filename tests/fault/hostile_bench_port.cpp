// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/cli/bench/neighbours.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/fault/hostile_ports.h"
#include "tests/support/strangers.h"

namespace lockstep::test {
namespace {

// Rank 0's door, in a ring whose ranks are threads.
class BenchPort final : public AttackedPort {
 public:
  BenchPort() {
    auto endpoints = transport::make_loopback(kWorld);
    on_every_rank(
        [&](std::size_t rank) { ranks_[rank] = std::make_unique<RingRank>(std::move(endpoints[rank])); });
  }

  transport::Address address() const override { return ranks_[0]->door.address(); }
  // Rank 1 knows the secret, but has nothing to do there.
  transport::Credentials welcome() const override { return ranks_[1]->credentials; }

  void expect_the_honest_are_served() override {
    on_every_rank([this](std::size_t number) {
      RingRank& rank = *ranks_[number];
      const cli::Neighbours neighbours = cli::join_neighbours(rank.world, rank.credentials, rank.door);
      const auto mine = static_cast<std::byte>(number);
      std::byte theirs{};
      neighbours.next->write_all(ConstBytes(&mine, 1), soon());
      neighbours.previous->read_all(Bytes(&theirs, 1), soon());
      EXPECT_EQ(static_cast<std::size_t>(theirs), (number + kWorld - 1) % kWorld);
    });
  }

 private:
  static constexpr int kWorld = 3;

  // All ranks make theirs at the same time.
  struct RingRank {
    explicit RingRank(std::unique_ptr<transport::Endpoint> endpoint) : world(std::move(endpoint)) {}

    comm::Communicator world;
    transport::Credentials credentials = cli::ring_credentials(world);
    transport::Listener door = cli::ring_door(credentials);
  };

  static void on_every_rank(const std::function<void(std::size_t rank)>& body) {
    std::vector<std::future<void>> done;
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
      done.push_back(std::async(std::launch::async, [&body, rank] { body(rank); }));
    }
    for (auto& one : done) one.get();
  }

  std::array<std::unique_ptr<RingRank>, kWorld> ranks_;
};

}  // namespace

std::unique_ptr<AttackedPort> make_bench_port() {
  return std::make_unique<BenchPort>();
}

}  // namespace lockstep::test
