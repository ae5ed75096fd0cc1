// SPDX-License-Identifier: Apache-2.0
//
// A peer of the tcp transport that has proved itself and then misbehaves: frames and bytes of any kind,
// between calls that a rank makes. The input is a list of actions, each a byte and what it needs.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/limits.h"
#include "lockstep/transport/tcp/peer.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::transport;
using namespace lockstep::transport::tcp;

namespace {

constexpr std::uint64_t kGeneration = 5;
constexpr std::size_t kMaxActions = 32;
constexpr std::size_t kLongest = kSegmentBytes + 1;
constexpr std::array<std::size_t, 8> kSizes = {
    1, 7, 100, kEagerBytes, kEagerBytes + 1, 3 * kEagerBytes, kSegmentBytes, kLongest};

// What the peer has sent and not been read; takes everything that is written.
class ScriptedConnection final : public Connection {
 public:
  void arrive(ConstBytes bytes) { incoming_.insert(incoming_.end(), bytes.begin(), bytes.end()); }
  void end() { ended_ = true; }

  std::ptrdiff_t try_read(Bytes into) override {
    const std::size_t count = std::min(into.size(), incoming_.size() - read_);
    if (count == 0) return ended_ ? kClosed : kWouldBlock;
    std::copy_n(incoming_.begin() + static_cast<std::ptrdiff_t>(read_), count, into.begin());
    read_ += count;
    return static_cast<std::ptrdiff_t>(count);
  }
  std::ptrdiff_t try_write(std::span<const ConstBytes> pieces) override {
    std::ptrdiff_t total = 0;
    for (ConstBytes piece : pieces) total += static_cast<std::ptrdiff_t>(piece.size());
    return total;
  }
  Readiness awaits() const override { return Readiness::read; }
  int fd() const override { return -1; }
  std::string close_reason() const override { return "the script says so"; }

 private:
  std::vector<std::byte> incoming_;
  std::size_t read_ = 0;
  bool ended_ = false;
};

// Mostly a header that could be right, so that the fuzzer gets past the decoder.
FrameHeader some_header(fuzz::Input& input) {
  FrameHeader header;
  header.type = static_cast<FrameType>(input.number<std::uint8_t>() % 11);
  header.stream = input.number<std::uint8_t>() % 2;
  header.sequence = input.number<std::uint8_t>() % 8;
  header.envelope = {.contract = input.number<std::uint8_t>() % 8u == 7u ? 1u : 0u, .sequence = 0};
  header.total = kSizes[input.number<std::uint8_t>() % kSizes.size()];
  header.offset = input.number<std::uint8_t>() % 4 * kSegmentBytes;
  switch (header.type) {
    case FrameType::eager:
      header.length = static_cast<std::uint32_t>(header.total);
      header.offset = 0;
      break;
    case FrameType::data:
      header.length = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(kSegmentBytes, header.total - std::min(header.offset, header.total)));
      break;
    case FrameType::credit:
      header.offset = std::min<std::uint64_t>(header.offset + kSegmentBytes, header.total);
      break;
    case FrameType::notice:
      header.length = kNoticeHeadBytes;
      header.total = header.offset = 0;
      break;
    case FrameType::disagree:
      header.length = kDisagreeBytes;
      header.offset = 0;
      break;
    case FrameType::failure:
      header.length = input.number<std::uint8_t>();
      header.sequence = header.total = header.offset = 0;
      break;
    case FrameType::give_back:
      header.sequence = header.offset = 0;
      header.total = input.number<std::uint16_t>();
      break;
    default:
      header.offset = 0;
  }
  return header;
}

class Rank0 {
 public:
  Rank0()
      : pools_{.small = {kEagerBytes, 4}, .segments = {kSegmentBytes, 4}},
        peer_(1, kGeneration, pools_, progress_) {
    auto connection = std::make_unique<ScriptedConnection>();
    connection_ = connection.get();
    peer_.add_link(std::move(connection));
  }

  void act(fuzz::Input& input) {
    const std::uint8_t action = input.number<std::uint8_t>();
    Channel& channel = peer_.channel(action / 16 % 2);
    switch (action % 10) {
      case 0:
      case 1:
        return frame_arrives(input);
      case 2:
        return arrives(input.take(input.number<std::uint8_t>()));
      case 3:
        return channel.receive({}, memory(input));
      case 4:
        return channel.receive_view({}, size(input));
      case 5:
        return consume(channel, input.number<std::uint32_t>());
      case 6:
        return channel.send({}, memory(input));
      case 7:
        if (peer_.is_connected() && action > 200) connection_->end();
        return;
      case 8:
        if (action > 100) channel.abandon();
        return;
      default:
        peer_.send_failure(action % 2, "a reason");
    }
  }

  void pump() {
    for (StreamId stream : {0, 1}) {
      Channel& channel = peer_.channel(stream);
      guarded(channel, [&] { channel.pump(); });
      fuzz::require(channel.received_bytes() <= kLongest, "no more arrives than was asked for");
      peer_.notices().failure(stream);
    }
  }

 private:
  template <typename Call>
  void guarded(Channel& channel, Call&& call) {
    bool broken = false;
    try {
      broken = !fuzz::accepts<DataError>(call);
    } catch (const EnvelopeMismatch&) {
      broken = true;
    }
    if (broken) channel.abandon();
  }

  void arrives(ConstBytes bytes) {
    if (peer_.is_connected()) connection_->arrive(bytes);
  }

  void frame_arrives(fuzz::Input& input) {
    const FrameHeader header = some_header(input);
    arrives(encode(header, kGeneration));
    arrives(std::vector<std::byte>(header.length));
  }

  void consume(Channel& channel, std::size_t most) {
    guarded(channel, [&] {
      const ConstBytes seen = channel.view();
      unsigned sum = 0;
      for (std::byte byte : seen) sum += static_cast<unsigned>(byte);
      fuzz::require(sum <= 255 * seen.size(), "what is seen can be read");
      channel.consume(std::min(most, seen.size()));
    });
  }

  std::size_t size(fuzz::Input& input) { return kSizes[input.number<std::uint8_t>() % kSizes.size()]; }
  Bytes memory(fuzz::Input& input) { return buffers_.emplace_back(size(input)); }

  BlockPools pools_;
  Progress progress_;
  std::deque<std::vector<std::byte>> buffers_;  // outlive the messages that use them
  tcp::Peer peer_;
  ScriptedConnection* connection_ = nullptr;  // the peer's; valid while it is connected
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Rank0 rank;
  for (std::size_t action = 0; action < kMaxActions && !input.empty(); ++action) {
    rank.act(input);
    rank.pump();
  }
  return 0;
}
