// SPDX-License-Identifier: Apache-2.0
//
// Channels over a wire that does what a test wants, in the place of MPI.
#include "lockstep/transport/mpi/channel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::transport::mpi {
namespace {

// Rank 0 of 2. Sends end, and messages arrive, as the test says.
class ScriptedWire final : public Wire {
 public:
  State sends = State::pending;

  // From rank 1, for the oldest receive of this tag.
  void arrive(int tag, ConstBytes message) {
    const auto receive = std::find_if(receives_.begin(), receives_.end(),
                                      [tag](const Receive& one) { return one.tag == tag; });
    ASSERT_NE(receive, receives_.end());
    std::copy(message.begin(), message.end(), receive->into.begin());
    arrived_[receive->request] = message.size();
    receives_.erase(receive);
  }

  Rank rank() const override { return 0; }
  int world() const override { return 2; }
  bool shares_host(Rank) const override { return true; }
  Transfer send(Rank, int, ConstBytes) override {
    sent_.insert(++transfers_);
    return {.request = transfers_};
  }
  Transfer receive(Rank, int tag, Bytes into) override {
    receives_.push_back({.request = ++transfers_, .tag = tag, .into = into});
    return {.request = transfers_};
  }
  Outcome test(Transfer& transfer) override {
    if (const auto found = arrived_.find(transfer.request); found != arrived_.end()) {
      return {.state = State::done, .from = 1, .bytes = found->second};
    }
    return {.state = sent_.contains(transfer.request) ? sends : State::pending};
  }
  void cancel(Transfer&) override {}
  bool leave() override { return true; }
  void finish() override {}

 private:
  struct Receive {
    std::uintptr_t request = 0;
    int tag = 0;
    Bytes into;
  };

  std::uintptr_t transfers_ = 0;
  std::set<std::uintptr_t> sent_;
  std::vector<Receive> receives_;                  // that nothing has arrived for
  std::map<std::uintptr_t, std::size_t> arrived_;  // bytes
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

TEST_F(MpiChannelAlone, TakesDataOfItsVersionOnly) {
  for (const std::uint32_t version : {kFrameVersion, kFrameVersion + 1}) {
    const DataHeader header{.version = version,
                            .envelope = {},
                            .message = channel_.receives_done(),
                            .message_bytes = payload_.size(),
                            .payload_bytes = payload_.size()};
    std::vector<std::byte> frame(sizeof(header) + payload_.size());
    std::memcpy(frame.data(), &header, sizeof(header));
    channel_.receive({}, payload_);
    channel_.pump();
    wire_.arrive(0, frame);
    if (version == kFrameVersion) {
      EXPECT_TRUE(channel_.pump());
    } else {
      EXPECT_THROW(channel_.pump(), DataError);
    }
  }
  EXPECT_EQ(channel_.receives_done(), 1U);
}

TEST_F(MpiChannelAlone, WhoSendsNoticesOfAnotherVersionCountsAsLost) {
  const ControlFrame known{.kind = ControlKind::notice, .stream = 3};
  wire_.arrive(kControlTag, as_bytes_of(known));
  notices_.progress();
  EXPECT_EQ(notices_.heard(1, 3).count, 1U);
  EXPECT_FALSE(notices_.said_goodbye(1));
  const ControlFrame unknown{.version = kFrameVersion + 1, .kind = ControlKind::notice, .stream = 4};
  wire_.arrive(kControlTag, as_bytes_of(unknown));
  notices_.progress();
  EXPECT_EQ(notices_.heard(1, 4).count, 0U);
  EXPECT_TRUE(notices_.said_goodbye(1));
}

}  // namespace
}  // namespace lockstep::transport::mpi
