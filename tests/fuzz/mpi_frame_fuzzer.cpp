// SPDX-License-Identifier: Apache-2.0
//
// A peer over MPI that sends any frames at all, between calls that a rank makes. The input is a list of
// actions, each a byte and what it needs.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/transport/mpi/channel.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::transport;
using namespace lockstep::transport::mpi;

namespace {

constexpr Rank kPeer = 1;
constexpr StreamId kStream = 0;
constexpr std::size_t kMaxActions = 32;
constexpr std::size_t kLongest = 2 * kFramePayload + 1;
constexpr std::array<std::size_t, 5> kSizes = {1, 100, kFramePayload, kFramePayload + 1, kLongest};

// Everything that is sent is taken; what arrives is what the script says, in order.
class ScriptedWire final : public Wire {
 public:
  void arrive(int tag, ConstBytes message) { arrived_[tag].emplace_back(message.begin(), message.end()); }

  Rank rank() const override { return 0; }
  int world() const override { return 2; }
  bool shares_host(Rank) const override { return true; }
  Transfer send(Rank, int, ConstBytes) override { return {}; }
  Transfer receive(Rank, int tag, Bytes into) override {
    posted_[++transfers_] = {tag, into};
    return {.request = transfers_};
  }
  Outcome test(Transfer& transfer) override {
    const auto posted = posted_.find(transfer.request);
    if (posted == posted_.end()) return {.state = State::done};
    const auto [tag, into] = posted->second;
    std::deque<std::vector<std::byte>>& waiting = arrived_[tag];
    if (waiting.empty()) return {};
    const std::size_t bytes = std::min(waiting.front().size(), into.size());
    std::copy_n(waiting.front().begin(), bytes, into.begin());
    waiting.pop_front();
    posted_.erase(posted);
    return {.state = State::done, .from = kPeer, .bytes = bytes};
  }
  void cancel(Transfer&) override {}
  bool leave() override { return true; }
  void finish() override {}

 private:
  std::uintptr_t transfers_ = 0;
  std::map<std::uintptr_t, std::pair<int, Bytes>> posted_;
  std::map<int, std::deque<std::vector<std::byte>>> arrived_;
};

std::size_t some_size(fuzz::Input& input) {
  return kSizes[input.number<std::uint8_t>() % kSizes.size()];
}

class Rank0 {
 public:
  void act(fuzz::Input& input) {
    const std::uint8_t action = input.number<std::uint8_t>();
    switch (action % 8) {
      case 0:
      case 1:
        return data_arrives(input);
      case 2:
        return wire_.arrive(kStream, input.take(input.number<std::uint8_t>()));
      case 3:
        return channel_.receive({}, buffers_.emplace_back(some_size(input)));
      case 4:
        return channel_.receive_view({}, some_size(input));
      case 5:
        return consume(input.number<std::uint32_t>());
      case 6:
        return control_arrives(input);
      default:
        if (action > 200) channel_.abandon();
    }
  }

  void pump() {
    guarded([&] { channel_.pump(); });
    notices_.progress();
    fuzz::require(channel_.received_bytes() <= kLongest, "no more arrives than was asked for");
    const NoticeLog& heard = notices_.heard(kPeer, kStream);
    fuzz::require(!heard.failure || heard.failure->size() <= kMaxFailureText, "a failure has a limit");
  }

 private:
  template <typename Call>
  void guarded(Call&& call) {
    bool broken = false;
    try {
      broken = !fuzz::accepts<DataError>(call);
    } catch (const EnvelopeMismatch&) {
      broken = true;
    }
    if (broken) channel_.abandon();
  }

  // Mostly a frame that could be right.
  void data_arrives(fuzz::Input& input) {
    DataHeader header;
    header.message = input.number<std::uint8_t>() % 4;
    header.message_bytes = some_size(input);
    header.offset = input.number<std::uint8_t>() % 3 * kFramePayload;
    header.payload_bytes = std::min<std::uint64_t>(
        kFramePayload, header.message_bytes - std::min(header.offset, header.message_bytes));
    header.notices = input.number<std::uint8_t>();
    const std::size_t payload = header.payload_bytes;
    if (input.number<std::uint8_t>() % 4 == 3) {
      header.payload_bytes = input.number<std::uint64_t>();
      header.envelope.contract = input.number<std::uint8_t>();
      header.notices = input.number<std::uint64_t>();
    }
    std::vector<std::byte> frame(sizeof(header) + payload);
    std::memcpy(frame.data(), &header, sizeof(header));
    wire_.arrive(kStream, frame);
  }

  void control_arrives(fuzz::Input& input) {
    ControlFrame frame;
    frame.kind = static_cast<ControlKind>(input.number<std::uint8_t>());
    frame.stream = input.number<std::uint8_t>() % 4 == 3 ? input.number<std::uint32_t>() : kStream;
    frame.index = input.number<std::uint64_t>();
    frame.text_bytes = input.number<std::uint16_t>();
    const std::size_t cut = input.number<std::uint8_t>() % 8 == 7 ? input.number<std::uint8_t>() : 0;
    wire_.arrive(kControlTag, as_bytes_of(frame).first(sizeof(frame) - std::min(cut, sizeof(frame))));
  }

  void consume(std::size_t most) {
    guarded([&] {
      const ConstBytes seen = channel_.view();
      unsigned sum = 0;
      for (std::byte byte : seen) sum += static_cast<unsigned>(byte);
      fuzz::require(sum <= 255 * seen.size(), "what is seen can be read");
      if (!seen.empty()) channel_.consume(std::min(most, seen.size()));
    });
  }

  std::deque<std::vector<std::byte>> buffers_;  // outlive the messages that use them
  ScriptedWire wire_;
  Notices notices_{wire_};
  Station station_{.wire = wire_, .notices = notices_};
  bool peer_gone_ = false;
  MpiChannel channel_{station_, peer_gone_, kPeer, kStream};
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
