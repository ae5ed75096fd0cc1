// SPDX-License-Identifier: Apache-2.0
//
// The link to a peer over a connection that takes as much as a test wants.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "lockstep/transport/tcp/limits.h"
#include "lockstep/transport/tcp/link.h"
#include "lockstep/transport/tcp/peer.h"

namespace lockstep::transport::tcp {
namespace {

constexpr StreamId kStream = 4;
constexpr Envelope kEnvelope = {.contract = 1, .sequence = 2};

// Has room for some bytes; nothing arrives.
class NarrowConnection final : public Connection {
 public:
  std::size_t room = 0;

  std::ptrdiff_t try_read(Bytes) override { return kWouldBlock; }
  std::ptrdiff_t try_write(std::span<const ConstBytes> pieces) override {
    std::size_t asked = 0;
    for (const ConstBytes piece : pieces) asked += piece.size();
    const std::size_t put = std::min(room, asked);
    room -= put;
    return put == 0 ? kWouldBlock : static_cast<std::ptrdiff_t>(put);
  }
  Readiness awaits() const override { return Readiness::write; }
  int fd() const override { return -1; }
  std::string close_reason() const override { return "it never ends"; }
};

// A page that cannot be read any more once it is freed.
class Page {
 public:
  Page() : memory_(::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~Page() { ::munmap(memory_, kBytes); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  ConstBytes bytes() const { return {static_cast<const std::byte*>(memory_), kBytes}; }

  static constexpr std::size_t kBytes = 4096;

 private:
  void* memory_;
};

class TcpLink : public testing::Test {
 protected:
  TcpLink() {
    auto connection = std::make_unique<NarrowConnection>();
    connection_ = connection.get();
    peer_.add_link(std::move(connection));
  }

  BlockPools pools_{.small{kEagerBytes, 4}, .segments{kSegmentBytes, 4}};
  Progress progress_;
  Peer peer_{1, 0, pools_, progress_};
  NarrowConnection* connection_ = nullptr;
};

// The one after it, half written, is copied: nobody may look at what its sender has freed meanwhile.
TEST_F(TcpLink, AMessageThatWasWrittenIsNotTouchedWhenItsStreamIsGivenUp) {
  const std::vector<std::byte> stuck(kEagerBytes);
  auto written = std::make_unique<Page>();
  Channel& channel = peer_.channel(kStream);
  channel.send(kEnvelope, written->bytes());
  channel.send(kEnvelope, stuck);
  connection_->room = 2 * kHeaderBytes + Page::kBytes + 100;
  channel.pump();
  ASSERT_EQ(channel.sends_done(), 1U);
  written.reset();
  channel.abandon();
}

TEST_F(TcpLink, AReportOfFailureIsNotOwedOnceItIsWritten) {
  const std::vector<std::byte> stuck(kEagerBytes);
  peer_.channel(kStream).send(kEnvelope, stuck);
  peer_.send_failure(kStream, "no more paper");
  EXPECT_TRUE(peer_.owes_failure());
  connection_->room = 2 * kHeaderBytes + 100;
  peer_.flush();
  EXPECT_FALSE(peer_.owes_failure());
}

}  // namespace
}  // namespace lockstep::transport::tcp
