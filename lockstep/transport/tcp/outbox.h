// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/channel.h"
#include "lockstep/transport/tcp/frame.h"

namespace lockstep::transport::tcp {

// A frame whose payload is the caller's memory.
struct PayloadFrame {
  FrameHeader header;
  ConstBytes payload;
};

// The sending half of a channel: decides which frame goes next. Messages are begun in order. A small one goes
// at once while the eager budget lasts; any other waits for credit, and is offered meanwhile so that a
// receiver that waits for something else finds out. Knows nothing of sockets.
class Outbox {
 public:
  // `control` outlives this; small frames are appended to it.
  Outbox(StreamId stream, std::deque<ControlFrame>& control) : stream_(stream), control_(control) {}

  void send(const Envelope& envelope, ConstBytes payload);

  // How many messages have been written completely, counted in order.
  std::uint64_t done() const { return first_; }

  // The next frame with payload, if one may go now. The payload is in use until on_written() has counted it.
  std::optional<PayloadFrame> next();
  void on_written(std::uint64_t sequence, std::size_t bytes);

  // What the receiver says. DataError when it breaks the rules.
  void on_credit(const FrameHeader& header);
  void on_give_back(const FrameHeader& header);

  const std::optional<EnvelopeMismatch>& mismatch() const { return mismatch_; }

  // Forgets all messages and sends no more.
  void abandon();

 private:
  struct Message {
    Envelope envelope;
    ConstBytes payload;
    std::size_t granted = 0;  // of payload; beyond it must wait
    std::size_t issued = 0;   // has been returned by next()
    std::size_t written = 0;
    bool offered = false;
  };
  struct Credit {
    Envelope envelope;
    std::uint64_t total = 0;
    std::uint64_t granted = 0;
  };

  void apply(Message& message, std::uint64_t sequence, const Credit& credit);
  bool may_go_eagerly(const Message& message) const;
  PayloadFrame issue(Message& message, FrameType type, std::size_t bytes);
  void offer(Message& message);

  StreamId stream_;
  std::deque<ControlFrame>& control_;
  std::deque<Message> messages_;  // not completely written, in order
  std::uint64_t first_ = 0;       // sequence of messages_.front()
  std::size_t begun_ = 0;         // messages_ before this one have been issued completely
  std::map<std::uint64_t, Credit> early_credits_;
  std::uint64_t eager_sent_ = 0;
  std::uint64_t eager_returned_ = 0;
  std::optional<EnvelopeMismatch> mismatch_;
  bool closed_ = false;
};

}  // namespace lockstep::transport::tcp
