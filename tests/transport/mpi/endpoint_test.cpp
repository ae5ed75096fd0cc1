// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite over MPI. Every process that mpirun started runs all tests in lock step; each test
// makes an endpoint of all of them, and a test for fewer ranks is run by the first ones. Not run here: a
// sleep that lasts (a rank that waits for MPI naps), and a death inside a process.
#include "lockstep/transport/mpi/endpoint.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/transport/conformance.h"

namespace lockstep::transport {
namespace {

// The first `world` ranks of an endpoint.
class FirstRanks final : public Endpoint {
 public:
  FirstRanks(std::unique_ptr<Endpoint> all, int world) : all_(std::move(all)), world_(world) {}

  Rank rank() const override { return all_->rank(); }
  int world() const override { return world_; }
  std::string_view kind(Rank peer) const override { return all_->kind(peer); }
  Channel& channel(Rank peer, StreamId stream) override { return all_->channel(peer, stream); }
  Bytes allocate(std::size_t bytes) override { return all_->allocate(bytes); }
  void release(Bytes memory) override { all_->release(memory); }
  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) override {
    all_->publish(stream, index, head);
  }
  void fail(StreamId stream, std::string_view why) override { all_->fail(stream, why); }
  void pass_on_failures(Deadline deadline) override { all_->pass_on_failures(deadline); }
  void push_notice(Rank peer, StreamId stream) override { all_->push_notice(peer, stream); }
  std::uint64_t notices_of(Rank peer, StreamId stream) override { return all_->notices_of(peer, stream); }
  std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) override {
    return all_->notice_of(peer, stream, index);
  }
  std::optional<std::string> failure_of(Rank peer, StreamId stream) override {
    return all_->failure_of(peer, stream);
  }
  bool alive(Rank peer) override { return all_->alive(peer); }
  bool prepare_wait() override { return all_->prepare_wait(); }
  int wait_fd() const override { return all_->wait_fd(); }
  void finish_wait() override { all_->finish_wait(); }
  void wake() override { all_->wake(); }

 private:
  std::unique_ptr<Endpoint> all_;
  int world_;
};

// The endpoint of this process; none if it is not among the first `world` ranks, once those have finished.
std::vector<std::unique_ptr<Endpoint>> make_world(int world) {
  std::unique_ptr<Endpoint> all = make_mpi_endpoint();
  std::vector<std::unique_ptr<Endpoint>> mine;
  if (all->rank() < world) {
    const int size = std::min(world, all->world());
    mine.push_back(std::make_unique<FirstRanks>(std::move(all), size));
    return mine;
  }
  while (all->alive(0)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return mine;
}

INSTANTIATE_TEST_SUITE_P(Mpi, Conformance,
                         testing::Values(TransportUnderTest{.name = "mpi", .make_world = make_world}),
                         transport_name);

TEST(MpiEndpoint, APeerThatLeavesInOrderIsNoticed) {
  const std::vector<std::byte> last_words(100, std::byte{7});
  const std::unique_ptr<Endpoint> endpoint = make_mpi_endpoint();
  ASSERT_GE(endpoint->world(), 2);
  const Rank rank = endpoint->rank();
  EXPECT_TRUE(endpoint->shares_host(rank ^ 1)) << "mpirun has started all of them here";
  if (rank == 1) {
    endpoint->channel(0, 0).send({1, 1}, last_words);
    endpoint->channel(0, 0).pump();
    return;
  }
  std::atomic<bool> stop{false};
  Participant me(*endpoint, stop);
  if (rank == 0) {
    std::vector<std::byte> into(last_words.size());
    Channel& channel = endpoint->channel(1, 0);
    channel.receive({1, 1}, into);
    me.drive(channel, [&] { return channel.receives_done() == 1; });
    EXPECT_EQ(into, last_words);
  }
  me.wait_until([&] { return !endpoint->alive(1); });
}

TEST(MpiEndpoint, WhatNobodyReceivesDoesNotKeepARankFromLeaving) {
  const std::unique_ptr<Endpoint> endpoint = make_mpi_endpoint();
  const std::vector<std::byte> unwanted(3'000'000, std::byte{1});
  const Rank peer = endpoint->rank() ^ 1;
  ASSERT_LT(peer, endpoint->world());
  endpoint->channel(peer, 0).send({1, 1}, unwanted);
  endpoint->channel(peer, 0).pump();
}

}  // namespace
}  // namespace lockstep::transport
