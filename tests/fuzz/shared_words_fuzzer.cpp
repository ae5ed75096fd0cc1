// SPDX-License-Identifier: Apache-2.0
//
// The words that a rank of the same host shares with us, when it writes anything at all into them: parcels,
// grants and counters, between calls that a rank makes. The input is a list of actions.
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/incoming.h"
#include "lockstep/transport/memory/notices.h"
#include "lockstep/transport/memory/outgoing.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::transport;

namespace {

constexpr std::size_t kMaxActions = 64;
constexpr std::array<std::size_t, 6> kSizes = {
    1, 100, kEagerBytes, kEagerBytes + 1, kPieceBytes, 3 * kPieceBytes};
constexpr std::size_t kSegmentBytes = 4 * kPieceBytes;

// One segment of ours and one of the peer's.
class TwoSegments final : public AddressSpace {
 public:
  std::optional<Place> expose(ConstBytes memory) override {
    if (memory.data() < mine_.data() || memory.data() + memory.size() > mine_.data() + mine_.size())
      return {};
    return Place{.segment = 0, .offset = static_cast<std::uint64_t>(memory.data() - mine_.data())};
  }
  std::byte* resolve(Place place, std::size_t bytes) override {
    if (place.segment != 0 || place.offset > kSegmentBytes || bytes > kSegmentBytes - place.offset) {
      throw DataError("a place outside the peer's memory");
    }
    return theirs_.data() + place.offset;
  }
  Bytes mine() { return mine_; }

 private:
  std::vector<std::byte> mine_ = std::vector<std::byte>(kSegmentBytes);
  std::vector<std::byte> theirs_ = std::vector<std::byte>(kSegmentBytes);
};

// A number that is often near one that could be right.
std::uint64_t some_word(fuzz::Input& input) {
  const std::uint8_t how = input.number<std::uint8_t>();
  if (how < 128) return how;
  if (how < 192) return kSizes[how % kSizes.size()];
  if (how < 224) return (how - 192) * kCacheLine;
  return input.number<std::uint64_t>();
}

class Host {
 public:
  void act(fuzz::Input& input) {
    const std::uint8_t action = input.number<std::uint8_t>();
    switch (action % 9) {
      case 0:
      case 1:
        return write_parcel(input);
      case 2:
        return write_grant(input);
      case 3:
        theirs_->incoming.taken.store(some_word(input));
        return theirs_->incoming.consumed.store(some_word(input));
      case 4:
        return incoming_.receive({}, memory(input));
      case 5:
        return incoming_.receive_view({}, kSizes[input.number<std::uint8_t>() % kSizes.size()]);
      case 6:
        return guarded([&] { consume(input.number<std::uint16_t>()); });
      case 7:
        return outgoing_.send({}, memory(input));
      default:
        return guarded([&] { land(kSizes[input.number<std::uint8_t>() % kSizes.size()]); });
    }
  }

  void pump() {
    guarded([&] { incoming_.pump(); });
    guarded([&] { outgoing_.pump(); });
    incoming_.has_news();
    outgoing_.has_news();
  }

  bool broken() const { return broken_; }

 private:
  template <typename Call>
  void guarded(Call&& call) {
    try {
      broken_ |= !fuzz::accepts<DataError>(call);
    } catch (const EnvelopeMismatch&) {
      broken_ = true;
    }
    if (broken_) {
      incoming_.abandon();
      outgoing_.abandon();
    }
  }

  // The number of the next parcel is mostly right: others are not even looked at.
  void write_parcel(fuzz::Input& input) {
    Parcel& parcel = theirs_->outgoing.parcels[parcels_ % kParcels];
    parcel.contract = input.number<std::uint8_t>() == 255 ? 1 : 0;
    parcel.message_bytes = some_word(input);
    parcel.kind_and_segment = input.number<std::uint8_t>() % 5 | some_word(input) / 128 << 32;
    parcel.offset = some_word(input);
    parcel.bytes = some_word(input);
    parcel.number = ++parcels_;
  }

  void write_grant(fuzz::Input& input) {
    Grant& grant = theirs_->incoming.grants[grants_ % kGrants];
    grant.contract = input.number<std::uint8_t>() == 255 ? 1 : 0;
    grant.bytes = some_word(input);
    grant.segment = some_word(input) / 128;
    grant.offset = some_word(input);
    grant.number = ++grants_;
  }

  void consume(std::size_t most) {
    const ConstBytes seen = incoming_.view();
    unsigned sum = 0;
    for (std::byte byte : seen) sum += static_cast<unsigned>(byte);
    fuzz::require(sum <= 255 * seen.size(), "what is seen can be read");
    if (!seen.empty()) incoming_.consume(std::min(most, seen.size()));
  }

  void land(std::size_t bytes) {
    const Bytes landing = outgoing_.landing({}, bytes);
    std::fill(landing.begin(), landing.end(), std::byte{1});
    if (!landing.empty()) outgoing_.put({});
  }

  // Some memory can be reached by the peer, some cannot.
  Bytes memory(fuzz::Input& input) {
    const std::uint8_t choice = input.number<std::uint8_t>();
    const std::size_t bytes = kSizes[choice % kSizes.size()];
    if (choice >= 128) return space_.mine().first(bytes);
    return buffers_.emplace_back(bytes);
  }

  TwoSegments space_;
  std::deque<std::vector<std::byte>> buffers_;
  std::unique_ptr<ChannelBlock> mine_ = std::make_unique<ChannelBlock>();
  std::unique_ptr<ChannelBlock> theirs_ = std::make_unique<ChannelBlock>();
  Word peer_sleeps_ = 0;
  Bell bell_{peer_sleeps_, -1};
  Incoming incoming_{mine_->incoming, theirs_->outgoing, space_, bell_};
  Outgoing outgoing_{mine_->outgoing, theirs_->incoming, space_, bell_};
  std::uint64_t parcels_ = 0;
  std::uint64_t grants_ = 0;
  bool broken_ = false;
};

// A board of notices that holds anything at all.
void read_board(fuzz::Input& input) {
  const auto board = std::make_unique<StreamNotices>();
  board->published = some_word(input);
  board->failure_bytes = some_word(input);
  for (StreamNotices::Slot& slot : board->slots) slot.number = some_word(input);
  notices_on(*board);
  read_notice(*board, input.number<std::uint8_t>());
  fuzz::accepts<DataError>([&] {
    const auto text = read_failure(*board);
    fuzz::require(!text || text->size() <= kMaxFailureText, "a failure is within its limit");
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  read_board(input);
  Host host;
  for (std::size_t action = 0; action < kMaxActions && !input.empty() && !host.broken(); ++action) {
    host.act(input);
    host.pump();
  }
  return 0;
}
