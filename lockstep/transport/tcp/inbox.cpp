// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/inbox.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/limits.h"

namespace lockstep::transport::tcp {
namespace {

bool is_small(std::size_t bytes) {
  return bytes <= kEagerBytes;
}

std::size_t segments_of(std::size_t bytes) {
  return (bytes + kSegmentBytes - 1) / kSegmentBytes;
}

[[noreturn]] void reject(const FrameHeader& header, std::string_view why) {
  throw DataError(fmt::format("bad frame: message {} of stream {}, {} bytes at {}: {}", header.sequence,
                              header.stream, header.length, header.offset, why));
}

}  // namespace

// --- The receiver's calls.

void Inbox::post(const Envelope& envelope, Bytes into) {
  LOCKSTEP_CHECK(!into.empty());
  post(Message{.envelope = envelope, .into = into, .bytes = into.size()});
}

void Inbox::post_view(const Envelope& envelope, std::size_t bytes) {
  LOCKSTEP_CHECK(bytes > 0);
  post(Message{.envelope = envelope, .into = {}, .bytes = bytes});
}

void Inbox::post(Message posted) {
  if (closed_) return;
  const std::uint64_t sequence = first_ + messages_.size();
  messages_.push_back(std::move(posted));
  Message& message = messages_.back();
  if (offer_ && offer_->sequence == sequence) {
    const FrameHeader offered = *offer_;
    offer_.reset();
    if (!agrees(sequence, message, offered)) return;
    if (is_small(message.bytes)) grant(sequence, message, message.bytes);
  }
  grant_posted();
  deliver_early(sequence, message);
}

ConstBytes Inbox::view() const {
  if (messages_.empty() || messages_.front().segments.empty()) return {};
  const Message& message = messages_.front();
  const Segment& segment = message.segments.front();
  if (segment.offset > message.consumed) return {};
  const std::size_t read = message.consumed - segment.offset;
  return ConstBytes(segment.block.data(), segment.arrived).subspan(read);
}

void Inbox::consume(std::size_t bytes) {
  LOCKSTEP_CHECK(bytes <= view().size());
  if (bytes == 0) return;
  Message& message = messages_.front();
  message.consumed += bytes;
  const Segment& segment = message.segments.front();
  if (message.consumed == segment.offset + segment.bytes) message.segments.pop_front();
  if (!is_small(message.bytes)) window_used_ -= bytes;
  grant_posted();
  retire();
}

std::size_t Inbox::arrived_bytes() const {
  return messages_.empty() ? 0 : messages_.front().arrived;
}

void Inbox::abandon() {
  closed_ = true;
  messages_.clear();
  early_.clear();
  offer_.reset();
}

// --- What the sender sends.

Bytes Inbox::begin(const FrameHeader& header) {
  if (closed_ || mismatch_) return {};
  return header.type == FrameType::eager ? begin_eager(header) : begin_data(header);
}

Bytes Inbox::begin_eager(const FrameHeader& header) {
  static_assert(sizeof(decltype(early_)::value_type) + 128 <= kEagerOverhead, "a node, and two heap headers");
  Message* message = find(header.sequence);
  if (header.sequence < first_ || comes_eagerly(header.sequence, message)) reject(header, "it came twice");
  if (was_offered(header.sequence, message)) reject(header, "it was offered before");
  if (message == nullptr) {
    early_cost_ += header.length + kEagerOverhead;
    if (early_cost_ > kEagerBudget) reject(header, "more than the eager budget was sent");
    Early& early = early_[header.sequence];
    early.header = header;
    // As much as was charged: a block of the pool would let tiny messages take far more than the budget.
    early.block = Block(header.length);
    return {early.block.data(), header.length};
  }
  if (!agrees(header.sequence, *message, header)) return {};
  message->begun.push_back(true);
  take_from_budget(header.length);
  if (!message->is_view()) return message->into;
  message->segments.push_back({.offset = 0, .bytes = header.length, .block = pools_.small.take()});
  return {message->segments.back().block.data(), header.length};
}

Bytes Inbox::begin_data(const FrameHeader& header) {
  Message* message = header.sequence < first_ ? nullptr : find(header.sequence);
  if (message == nullptr) reject(header, "nobody asked for it");
  if (comes_eagerly(header.sequence, message)) reject(header, "it came eagerly before");
  if (header.envelope != message->envelope || header.total != message->bytes) {
    reject(header, "it is not the message that was granted");
  }
  if (header.offset + header.length > message->granted) reject(header, "it was not granted");
  if (message->begun.empty()) message->begun.resize(segments_of(message->bytes));
  const std::size_t index = header.offset / kSegmentBytes;
  if (message->begun[index]) reject(header, "it came twice");
  message->begun[index] = true;
  if (!message->is_view()) return message->into.subspan(header.offset, header.length);

  Block block = is_small(header.length) ? pools_.small.take() : pools_.segments.take();
  const Bytes memory(block.data(), header.length);
  const auto after = std::find_if(message->segments.begin(), message->segments.end(),
                                  [&](const Segment& segment) { return segment.offset > header.offset; });
  message->segments.insert(
      after, Segment{.offset = header.offset, .bytes = header.length, .block = std::move(block)});
  return memory;
}

void Inbox::on_bytes(const FrameHeader& header, std::size_t bytes, std::size_t so_far) {
  if (closed_ || mismatch_) return;
  if (const auto early = early_.find(header.sequence); early != early_.end()) {
    early->second.complete = so_far == header.length;
    if (Message* message = find(header.sequence)) deliver_early(header.sequence, *message);
    return;
  }
  Message* message = find(header.sequence);
  LOCKSTEP_CHECK(message != nullptr);
  message->arrived += bytes;
  if (message->is_view()) {
    const auto segment =
        std::find_if(message->segments.begin(), message->segments.end(),
                     [&](const Segment& candidate) { return candidate.offset == header.offset; });
    LOCKSTEP_CHECK(segment != message->segments.end());
    segment->arrived = so_far;
  }
  retire();
}

void Inbox::on_offer(const FrameHeader& header) {
  if (closed_ || mismatch_ || header.sequence < first_) return;
  Message* message = find(header.sequence);
  if (comes_eagerly(header.sequence, message)) reject(header, "it came eagerly before");
  if (message == nullptr) {
    offer_ = header;
  } else if (agrees(header.sequence, *message, header) && is_small(message->bytes) && message->granted == 0) {
    grant(header.sequence, *message, message->bytes);
  }
}

// --- Decisions.

Inbox::Message* Inbox::find(std::uint64_t sequence) {
  const std::uint64_t index = sequence - first_;
  return index < messages_.size() ? &messages_[index] : nullptr;
}

// Nothing else of such a message may come: it could end the message, and free its memory, while another link
// still reads the eager frame into it.
bool Inbox::comes_eagerly(std::uint64_t sequence, const Message* posted) const {
  return early_.contains(sequence) || (posted != nullptr && posted->granted == 0 && !posted->begun.empty());
}

// A small message is granted only when it was offered.
bool Inbox::was_offered(std::uint64_t sequence, const Message* posted) const {
  return (offer_ && offer_->sequence == sequence) ||
         (posted != nullptr && is_small(posted->bytes) && posted->granted > 0);
}

bool Inbox::agrees(std::uint64_t sequence, const Message& message, const FrameHeader& header) {
  if (header.envelope == message.envelope && header.total == message.bytes) return true;
  mismatch_ = EnvelopeMismatch{.mine = message.envelope,
                               .theirs = header.envelope,
                               .my_bytes = message.bytes,
                               .their_bytes = header.total};
  control_.push_back(make_disagree(stream_, sequence, *mismatch_));
  return false;
}

void Inbox::deliver_early(std::uint64_t sequence, Message& message) {
  const auto found = early_.find(sequence);
  if (found == early_.end() || !agrees(sequence, message, found->second.header)) return;
  if (!found->second.complete) return;
  message.arrived = message.bytes;
  message.begun.push_back(true);
  if (message.is_view()) {
    message.segments.push_back({.offset = 0,
                                .bytes = message.bytes,
                                .arrived = message.bytes,
                                .block = std::move(found->second.block)});
  } else {
    std::memcpy(message.into.data(), found->second.block.data(), message.bytes);
  }
  early_cost_ -= message.bytes + kEagerOverhead;
  take_from_budget(message.bytes);
  early_.erase(found);
  retire();
}

// Gives the budget back in a few large pieces rather than with every message.
void Inbox::take_from_budget(std::size_t bytes) {
  eager_taken_ += bytes + kEagerOverhead;
  if (eager_taken_ - eager_given_back_ < kEagerBudget / 4) return;
  eager_given_back_ = eager_taken_;
  control_.push_back({.header = {.type = FrameType::give_back,
                                 .stream = stream_,
                                 .length = 0,
                                 .sequence = 0,
                                 .envelope = {},
                                 .total = eager_taken_,
                                 .offset = 0},
                      .payload = {}});
}

void Inbox::grant_posted() {
  next_grant_ = std::max(next_grant_, first_);
  while (Message* message = find(next_grant_)) {
    if (!is_small(message->bytes)) {
      std::size_t up_to = message->bytes;
      if (message->is_view()) {
        const std::size_t rest = message->bytes - message->granted;
        const std::size_t room = kViewWindow - window_used_;
        // In large steps, or every piece consumed would cost a frame.
        if (room < rest && room < kViewWindow / 4) return;
        const std::size_t more = rest <= room ? rest : room / kSegmentBytes * kSegmentBytes;
        window_used_ += more;
        up_to = message->granted + more;
      }
      grant(next_grant_, *message, up_to);
      if (up_to < message->bytes) return;
    }
    ++next_grant_;
  }
}

void Inbox::grant(std::uint64_t sequence, Message& message, std::size_t up_to) {
  message.granted = up_to;
  control_.push_back({.header = {.type = FrameType::credit,
                                 .stream = stream_,
                                 .length = 0,
                                 .sequence = sequence,
                                 .envelope = message.envelope,
                                 .total = message.bytes,
                                 .offset = up_to},
                      .payload = {}});
}

void Inbox::retire() {
  while (!messages_.empty() && messages_.front().done()) {
    messages_.pop_front();
    ++first_;
  }
}

}  // namespace lockstep::transport::tcp
