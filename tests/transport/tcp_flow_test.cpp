// SPDX-License-Identifier: Apache-2.0
//
// The two halves of a channel against each other, without sockets: an outbox here, an inbox there.
#include <cstring>
#include <deque>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/inbox.h"
#include "lockstep/transport/tcp/limits.h"
#include "lockstep/transport/tcp/outbox.h"

namespace lockstep::transport::tcp {
namespace {

constexpr Envelope kEnvelope{.contract = 1, .sequence = 2};
constexpr StreamId kStream = 4;

class TcpFlow : public testing::Test {
 protected:
  // Carries control frames both ways until there are none; counts them by type.
  void carry_control() {
    while (!from_sender_.empty() || !from_receiver_.empty()) {
      if (!from_sender_.empty()) {
        const ControlFrame frame = take(from_sender_);
        if (frame.header.type == FrameType::offer) inbox_.on_offer(frame.header);
      }
      if (!from_receiver_.empty()) {
        const ControlFrame frame = take(from_receiver_);
        if (frame.header.type == FrameType::credit) outbox_.on_credit(frame.header);
        if (frame.header.type == FrameType::give_back) outbox_.on_give_back(frame.header);
      }
    }
  }

  ControlFrame take(std::deque<ControlFrame>& queue) {
    ControlFrame frame = std::move(queue.front());
    queue.pop_front();
    ++control_frames_[static_cast<std::size_t>(frame.header.type)];
    return frame;
  }

  // Carries frames until nothing moves; returns the payload bytes carried.
  std::size_t carry() {
    std::size_t bytes = 0;
    while (true) {
      carry_control();
      const std::optional<PayloadFrame> frame = outbox_.next();
      if (frame) {
        deliver(*frame);
        bytes += frame->payload.size();
      } else if (from_sender_.empty() && from_receiver_.empty()) {
        return bytes;
      }
    }
  }

  void deliver(const PayloadFrame& frame) {
    const Bytes target = inbox_.begin(frame.header);
    outbox_.on_written(frame.header.sequence, frame.payload.size());
    if (target.empty()) return;
    ASSERT_GE(target.size(), frame.payload.size());
    std::memcpy(target.data(), frame.payload.data(), frame.payload.size());
    inbox_.on_bytes(frame.header, frame.payload.size(), frame.payload.size());
  }

  int count(FrameType type) const { return control_frames_[static_cast<std::size_t>(type)]; }

  std::deque<ControlFrame> from_sender_;
  std::deque<ControlFrame> from_receiver_;
  BlockPools pools_{.small{kEagerBytes, 4}, .segments{kSegmentBytes, 4}};
  Outbox outbox_{kStream, from_sender_};
  Inbox inbox_{kStream, from_receiver_, pools_};
  std::array<int, 16> control_frames_{};
};

std::vector<std::byte> pattern(std::size_t bytes, int seed = 1) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 31 + i / 257 + seed);
  return made;
}

TEST_F(TcpFlow, AnEarlyReceiverCostsNoOffer) {
  const auto sent = pattern(1'000'000);
  std::vector<std::byte> received(sent.size());
  inbox_.post(kEnvelope, received);
  carry();
  outbox_.send(kEnvelope, sent);
  carry();
  EXPECT_EQ(outbox_.done(), 1u);
  EXPECT_EQ(inbox_.done(), 1u);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(count(FrameType::offer), 0);
  EXPECT_EQ(count(FrameType::credit), 1);
}

TEST_F(TcpFlow, ALargeMessageWaitsForItsReceiver) {
  const auto sent = pattern(kEagerBytes + 1);
  outbox_.send(kEnvelope, sent);
  EXPECT_EQ(carry(), 0u);
  EXPECT_EQ(count(FrameType::offer), 1);
  std::vector<std::byte> received(sent.size());
  inbox_.post(kEnvelope, received);
  EXPECT_EQ(carry(), sent.size());
  EXPECT_EQ(received, sent);
}

TEST_F(TcpFlow, SmallMessagesStopAtTheBudgetAndGoOnWhenTaken) {
  const auto sent = pattern(4096);
  constexpr std::size_t kMessages = 200;
  for (std::size_t i = 0; i < kMessages; ++i) outbox_.send(kEnvelope, sent);
  const std::size_t eager = carry() / sent.size();
  EXPECT_EQ(eager, kEagerBudget / (4096 + kEagerOverhead));
  EXPECT_EQ(outbox_.done(), eager);
  std::vector<std::byte> received(sent.size());
  for (std::size_t i = 0; i < kMessages; ++i) {
    std::fill(received.begin(), received.end(), std::byte{0});
    inbox_.post(kEnvelope, received);
    carry();
    ASSERT_EQ(inbox_.done(), i + 1);
    ASSERT_EQ(received, sent) << i;
  }
  EXPECT_EQ(outbox_.done(), kMessages);
  EXPECT_GT(count(FrameType::give_back), 0);
}

TEST_F(TcpFlow, AViewNeverHasMoreThanTheWindowInFlight) {
  const auto sent = pattern(5 * kViewWindow + 12'345);
  outbox_.send(kEnvelope, sent);
  inbox_.post_view(kEnvelope, sent.size());
  EXPECT_EQ(carry(), kViewWindow);
  std::vector<std::byte> received;
  while (inbox_.done() == 0) {
    const ConstBytes view = inbox_.view();
    ASSERT_FALSE(view.empty());
    const std::size_t taken = std::min<std::size_t>(view.size(), 100'000);
    received.insert(received.end(), view.begin(), view.begin() + static_cast<std::ptrdiff_t>(taken));
    inbox_.consume(taken);
    carry();
  }
  EXPECT_EQ(received, sent);
  EXPECT_LT(count(FrameType::credit), 30);
}

TEST_F(TcpFlow, SegmentsMayArriveInAnyOrder) {
  const auto sent = pattern(4 * kSegmentBytes - 7);
  for (const bool by_view : {false, true}) {
    std::vector<std::byte> received(sent.size());
    if (by_view) {
      inbox_.post_view(kEnvelope, sent.size());
    } else {
      inbox_.post(kEnvelope, received);
    }
    outbox_.send(kEnvelope, sent);
    carry_control();
    std::vector<PayloadFrame> frames;
    while (const auto frame = outbox_.next()) frames.push_back(*frame);
    ASSERT_EQ(frames.size(), 4u);
    for (const std::size_t i : {2, 0, 3, 1}) {
      deliver(frames[i]);
      if (by_view && i == 2) {
        EXPECT_TRUE(inbox_.view().empty()) << "bytes before it are missing";
      }
    }
    for (std::size_t at = 0; by_view && at < sent.size();) {
      const ConstBytes view = inbox_.view();
      ASSERT_FALSE(view.empty());
      std::memcpy(received.data() + at, view.data(), view.size());
      at += view.size();
      inbox_.consume(view.size());
    }
    EXPECT_EQ(received, sent);
  }
  EXPECT_EQ(inbox_.done(), 2u);
}

TEST_F(TcpFlow, BytesOfAViewAreVisibleBeforeTheirSegmentIsComplete) {
  const auto sent = pattern(kSegmentBytes);
  inbox_.post_view(kEnvelope, sent.size());
  outbox_.send(kEnvelope, sent);
  carry_control();
  const auto frame = outbox_.next();
  ASSERT_TRUE(frame.has_value());
  const Bytes target = inbox_.begin(frame->header);
  std::memcpy(target.data(), sent.data(), 1000);
  inbox_.on_bytes(frame->header, 1000, 1000);
  EXPECT_EQ(inbox_.view().size(), 1000u);
  EXPECT_EQ(inbox_.arrived_bytes(), 1000u);
  inbox_.consume(600);
  EXPECT_EQ(inbox_.view().size(), 400u);
  EXPECT_EQ(inbox_.done(), 0u);
}

TEST_F(TcpFlow, BothSidesSeeADisagreement) {
  const auto sent = pattern(100'000);
  std::vector<std::byte> received(99'999);
  inbox_.post(kEnvelope, received);
  outbox_.send(kEnvelope, sent);
  EXPECT_EQ(outbox_.next().has_value(), false);
  ASSERT_EQ(from_sender_.size(), 1u);  // the offer
  inbox_.on_offer(from_sender_.front().header);
  ASSERT_TRUE(inbox_.mismatch().has_value());
  EXPECT_EQ(inbox_.mismatch()->their_bytes, 100'000u);
  EXPECT_EQ(from_receiver_.back().header.type, FrameType::disagree);
  outbox_.on_credit(from_receiver_.front().header);
  ASSERT_TRUE(outbox_.mismatch().has_value());
  EXPECT_EQ(outbox_.mismatch()->their_bytes, 99'999u);
}

// --- What a peer that breaks the rules can send.

FrameHeader data_header(std::uint64_t sequence, std::uint64_t total, std::uint64_t offset) {
  return {.type = FrameType::data,
          .stream = kStream,
          .length = static_cast<std::uint32_t>(std::min<std::uint64_t>(kSegmentBytes, total - offset)),
          .sequence = sequence,
          .envelope = kEnvelope,
          .total = total,
          .offset = offset};
}

FrameHeader eager_header(std::uint64_t sequence, std::uint32_t bytes) {
  return {.type = FrameType::eager,
          .stream = kStream,
          .length = bytes,
          .sequence = sequence,
          .envelope = kEnvelope,
          .total = bytes};
}

TEST_F(TcpFlow, DataThatNobodyGrantedIsRefused) {
  EXPECT_THROW(inbox_.begin(data_header(0, 1 << 20, 0)), DataError);
  inbox_.post_view(kEnvelope, 3 * kViewWindow);
  EXPECT_NO_THROW(inbox_.begin(data_header(0, 3 * kViewWindow, 0)));
  EXPECT_THROW(inbox_.begin(data_header(0, 3 * kViewWindow, 0)), DataError) << "twice";
  EXPECT_THROW(inbox_.begin(data_header(0, 3 * kViewWindow, kViewWindow)), DataError) << "beyond the window";
  EXPECT_THROW(inbox_.begin(data_header(0, 2 * kViewWindow, 0)), DataError) << "another size";
  EXPECT_THROW(inbox_.begin(data_header(1, 3 * kViewWindow, 0)), DataError) << "another message";
}

TEST_F(TcpFlow, MoreThanTheEagerBudgetIsRefused) {
  std::uint64_t sequence = 0;
  for (std::size_t cost = 0; cost + kEagerBytes + kEagerOverhead <= kEagerBudget;
       cost += kEagerBytes + kEagerOverhead) {
    EXPECT_NO_THROW(inbox_.begin(eager_header(sequence++, kEagerBytes)));
  }
  EXPECT_THROW(inbox_.begin(eager_header(sequence, kEagerBytes)), DataError);
}

// The budget bounds memory, not only payload: messages of one byte must not cost a block each.
TEST_F(TcpFlow, TinyMessagesThatNobodyWantsTakeNoMoreThanTheBudget) {
  const std::size_t before = ::mallinfo2().uordblks;
  std::uint64_t messages = 0;
  try {
    while (messages < kEagerBudget) {
      const FrameHeader header = eager_header(messages, 1);
      inbox_.begin(header);
      inbox_.on_bytes(header, 1, 1);
      ++messages;
    }
  } catch (const DataError&) {
  }
  EXPECT_GT(messages, 100u);
  EXPECT_LE(::mallinfo2().uordblks, before + kEagerBudget);
}

TEST_F(TcpFlow, EagerMessagesThatComeTwiceAreRefused) {
  inbox_.begin(eager_header(3, 10));
  EXPECT_THROW(inbox_.begin(eager_header(3, 10)), DataError);
  std::vector<std::byte> received(10);
  inbox_.post(kEnvelope, received);
  inbox_.begin(eager_header(0, 10));
  EXPECT_THROW(inbox_.begin(eager_header(0, 10)), DataError);
  inbox_.on_bytes(eager_header(0, 10), 10, 10);
  EXPECT_EQ(inbox_.done(), 1u);
  EXPECT_THROW(inbox_.begin(eager_header(0, 10)), DataError);
}

FrameHeader offer_header(std::uint64_t sequence, std::uint64_t total) {
  return {.type = FrameType::offer,
          .stream = kStream,
          .sequence = sequence,
          .envelope = kEnvelope,
          .total = total};
}

// Frames of one message may come on several links, so one can be half read when the next begins: a message
// that comes in two ways would end while its memory is still written to.
TEST_F(TcpFlow, AnEagerMessageIsNotOfferedOrSentAgain) {
  for (const bool by_view : {false, true}) {
    std::vector<std::byte> received(10);
    const auto post = [&](Inbox& inbox) {
      if (by_view) return inbox.post_view(kEnvelope, received.size());
      inbox.post(kEnvelope, received);
    };
    Inbox early(kStream, from_receiver_, pools_);
    early.begin(eager_header(0, 10));
    EXPECT_THROW(early.on_offer(offer_header(0, 10)), DataError) << "not posted";
    EXPECT_THROW(early.begin(data_header(0, 10, 0)), DataError) << "not posted";
    early.on_bytes(eager_header(0, 10), 4, 4);
    post(early);
    EXPECT_THROW(early.on_offer(offer_header(0, 10)), DataError) << "posted while it came";
    EXPECT_THROW(early.begin(data_header(0, 10, 0)), DataError) << "posted while it came";
    EXPECT_THROW(early.begin(eager_header(0, 10)), DataError) << "posted while it came";
    EXPECT_EQ(early.done(), 0u);
    EXPECT_EQ(early.arrived_bytes(), 0u);

    Inbox late(kStream, from_receiver_, pools_);
    post(late);
    late.begin(eager_header(0, 10));
    EXPECT_THROW(late.on_offer(offer_header(0, 10)), DataError) << "posted before";
    EXPECT_THROW(late.begin(data_header(0, 10, 0)), DataError) << "posted before";
    EXPECT_THROW(late.begin(eager_header(0, 10)), DataError) << "posted before";
    EXPECT_TRUE(from_receiver_.empty()) << "nothing was granted";
  }
}

TEST_F(TcpFlow, AMessageThatWasOfferedDoesNotComeEagerly) {
  std::vector<std::byte> received(10);
  inbox_.on_offer(offer_header(0, 10));
  EXPECT_THROW(inbox_.begin(eager_header(0, 10)), DataError) << "not posted";
  inbox_.post(kEnvelope, received);
  EXPECT_THROW(inbox_.begin(eager_header(0, 10)), DataError) << "granted when it was posted";
  inbox_.begin(data_header(0, 10, 0));
  EXPECT_THROW(inbox_.begin(eager_header(0, 10)), DataError) << "its data comes";
  EXPECT_THROW(inbox_.begin(data_header(0, 10, 0)), DataError) << "twice";
  EXPECT_NO_THROW(inbox_.on_offer(offer_header(0, 10))) << "offers may be late";

  inbox_.post(kEnvelope, received);
  inbox_.on_offer(offer_header(1, 10));
  EXPECT_THROW(inbox_.begin(eager_header(1, 10)), DataError) << "granted when it was offered";
}

TEST_F(TcpFlow, CreditsWithoutEndAreRefused) {
  FrameHeader credit{.type = FrameType::credit,
                     .stream = kStream,
                     .sequence = 0,
                     .envelope = kEnvelope,
                     .total = 1 << 20,
                     .offset = 1 << 20};
  for (; credit.sequence < kMaxEarlyCredits; ++credit.sequence) outbox_.on_credit(credit);
  EXPECT_THROW(outbox_.on_credit(credit), DataError);
}

TEST_F(TcpFlow, MoreGivenBackThanSentIsRefused) {
  EXPECT_THROW(outbox_.on_give_back({.type = FrameType::give_back, .stream = kStream, .total = 1}),
               DataError);
}

TEST_F(TcpFlow, AbandonedHalvesDropWhatComes) {
  std::vector<std::byte> received(100'000);
  inbox_.post(kEnvelope, received);
  inbox_.abandon();
  EXPECT_TRUE(inbox_.begin(data_header(0, 100'000, 0)).empty());
  const auto sent = pattern(100);
  outbox_.send(kEnvelope, sent);
  outbox_.abandon();
  EXPECT_FALSE(outbox_.next().has_value());
  outbox_.on_written(0, 100);
}

}  // namespace
}  // namespace lockstep::transport::tcp
