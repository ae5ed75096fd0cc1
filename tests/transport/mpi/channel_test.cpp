// SPDX-License-Identifier: Apache-2.0
//
// Channels over a wire that does what a test wants, in the place of MPI.
#include "lockstep/transport/mpi/channel.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace lockstep::transport::mpi {
namespace {

// Rank 0 of 2. Sends end as the test says, and nothing arrives.
class ScriptedWire final : public Wire {
 public:
  State sends = State::pending;

  Rank rank() const override { return 0; }
  int world() const override { return 2; }
  bool shares_host(Rank) const override { return true; }
  Transfer send(Rank, int, ConstBytes) override {
    sent_.insert(++transfers_);
    return {.request = transfers_};
  }
  Transfer receive(Rank, int, Bytes) override { return {.request = ++transfers_}; }
  Outcome test(Transfer& transfer) override {
    return {.state = sent_.contains(transfer.request) ? sends : State::pending};
  }
  void cancel(Transfer&) override {}
  bool leave() override { return true; }
  void finish() override {}

 private:
  std::uintptr_t transfers_ = 0;
  std::set<std::uintptr_t> sent_;
};

class MpiChannelAlone : public ::testing::Test {
 protected:
  ScriptedWire wire_;
  Notices notices_{wire_};
  Station station_{.wire = wire_, .notices = notices_};
  bool peer_gone_ = false;
  MpiChannel channel_{station_, peer_gone_, 1, 0};
  std::array<std::byte, 100> payload_{};
};

TEST_F(MpiChannelAlone, ASendIsDoneWhenThePeerHasTakenIt) {
  channel_.send({}, payload_);
  channel_.pump();
  EXPECT_EQ(channel_.sends_done(), 0U);
  wire_.sends = State::done;
  channel_.pump();
  EXPECT_EQ(channel_.sends_done(), 1U);
  EXPECT_FALSE(peer_gone_);
}

// Or an operation that only sends would end well.
TEST_F(MpiChannelAlone, ASendThatFailedIsNotDone) {
  channel_.send({}, payload_);
  channel_.pump();
  wire_.sends = State::failed;
  channel_.pump();
  EXPECT_TRUE(peer_gone_);
  EXPECT_EQ(channel_.sends_done(), 0U);
}

}  // namespace
}  // namespace lockstep::transport::mpi
