// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/outbox.h"

#include <algorithm>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/limits.h"

namespace lockstep::transport::tcp {
namespace {

std::uint64_t eager_cost(std::size_t bytes) {
  return bytes + kEagerOverhead;
}

}  // namespace

void Outbox::send(const Envelope& envelope, ConstBytes payload) {
  LOCKSTEP_CHECK(!payload.empty());
  if (closed_) return;
  const std::uint64_t sequence = first_ + messages_.size();
  Message& message = messages_.emplace_back(Message{.envelope = envelope, .payload = payload});
  const auto early = early_credits_.find(sequence);
  if (early == early_credits_.end()) return;
  const Credit credit = early->second;
  early_credits_.erase(early);
  apply(message, sequence, credit);
}

std::optional<PayloadFrame> Outbox::next() {
  if (closed_ || mismatch_ || begun_ == messages_.size()) return std::nullopt;
  Message& message = messages_[begun_];
  if (may_go_eagerly(message)) {
    eager_sent_ += eager_cost(message.payload.size());
    return issue(message, FrameType::eager, message.payload.size());
  }
  if (message.granted > message.issued) {
    return issue(message, FrameType::data, std::min(kSegmentBytes, message.granted - message.issued));
  }
  if (!message.offered && message.issued == 0) offer(message);
  return std::nullopt;
}

bool Outbox::may_go_eagerly(const Message& message) const {
  const std::size_t bytes = message.payload.size();
  return bytes <= kEagerBytes && !message.offered && message.granted == 0 &&
         eager_sent_ - eager_returned_ + eager_cost(bytes) <= kEagerBudget;
}

PayloadFrame Outbox::issue(Message& message, FrameType type, std::size_t bytes) {
  const ConstBytes payload = message.payload.subspan(message.issued, bytes);
  const FrameHeader header{.type = type,
                           .stream = stream_,
                           .length = static_cast<std::uint32_t>(bytes),
                           .sequence = first_ + begun_,
                           .envelope = message.envelope,
                           .total = message.payload.size(),
                           .offset = message.issued};
  message.issued += bytes;
  if (message.issued == message.payload.size()) ++begun_;
  return {.header = header, .payload = payload};
}

void Outbox::offer(Message& message) {
  message.offered = true;
  control_.push_back({.header = {.type = FrameType::offer,
                                 .stream = stream_,
                                 .length = 0,
                                 .sequence = first_ + begun_,
                                 .envelope = message.envelope,
                                 .total = message.payload.size(),
                                 .offset = 0},
                      .payload = {}});
}

void Outbox::on_written(std::uint64_t sequence, std::size_t bytes) {
  if (closed_) return;
  LOCKSTEP_CHECK(sequence >= first_ && sequence - first_ < messages_.size());
  messages_[sequence - first_].written += bytes;
  while (!messages_.empty() && messages_.front().written == messages_.front().payload.size()) {
    messages_.pop_front();
    ++first_;
    --begun_;
  }
}

void Outbox::on_credit(const FrameHeader& header) {
  if (closed_ || mismatch_) return;
  // A receiver that expects something else than the small message it is getting finds that out itself.
  if (header.sequence < first_) return;
  const Credit credit{.envelope = header.envelope, .total = header.total, .granted = header.offset};
  const std::uint64_t index = header.sequence - first_;
  if (index < messages_.size()) return apply(messages_[index], header.sequence, credit);
  if (early_credits_.size() >= kMaxEarlyCredits) {
    throw DataError(fmt::format("more than {} messages are asked for that were never offered on stream {}",
                                kMaxEarlyCredits, stream_));
  }
  Credit& kept = early_credits_[header.sequence];
  kept = {
      .envelope = credit.envelope, .total = credit.total, .granted = std::max(kept.granted, credit.granted)};
}

void Outbox::apply(Message& message, std::uint64_t sequence, const Credit& credit) {
  if (credit.envelope != message.envelope || credit.total != message.payload.size()) {
    mismatch_ = EnvelopeMismatch{.mine = message.envelope,
                                 .theirs = credit.envelope,
                                 .my_bytes = message.payload.size(),
                                 .their_bytes = credit.total};
    control_.push_back(make_disagree(stream_, sequence, *mismatch_));
    return;
  }
  message.granted = std::max<std::size_t>(message.granted, credit.granted);
}

void Outbox::on_give_back(const FrameHeader& header) {
  if (closed_) return;
  if (header.total > eager_sent_) {
    throw DataError(fmt::format("{} bytes of small messages were taken on stream {}, but only {} sent",
                                header.total, stream_, eager_sent_));
  }
  eager_returned_ = std::max(eager_returned_, header.total);
}

void Outbox::abandon() {
  closed_ = true;
  messages_.clear();
  begun_ = 0;
  early_credits_.clear();
}

}  // namespace lockstep::transport::tcp
