// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/channel.h"
#include "lockstep/transport/tcp/block_pool.h"
#include "lockstep/transport/tcp/frame.h"

namespace lockstep::transport::tcp {

// The receiving half of a channel: decides where the payload of each frame goes and how much the sender may
// send. Knows nothing of sockets.
//
// A large receive is granted as soon as it is posted: completely when it has memory of its own, up to
// kViewWindow bytes ahead of the consumer when it is to be viewed. A small one is granted only when the
// sender offers it, which it does when its eager budget is spent. So a message comes either in one eager
// frame or in data frames that were granted, never in both.
class Inbox {
 public:
  // `control` and `pools` outlive this; small frames are appended to `control`.
  Inbox(StreamId stream, std::deque<ControlFrame>& control, BlockPools& pools)
      : stream_(stream), control_(control), pools_(pools) {}

  void post(const Envelope& envelope, Bytes into);
  void post_view(const Envelope& envelope, std::size_t bytes);

  ConstBytes view() const;
  void consume(std::size_t bytes);

  // Messages received completely, counted in order; and what has arrived of the one after them.
  std::uint64_t done() const { return first_; }
  std::size_t arrived_bytes() const;

  // A frame of type eager or data begins: where its payload goes. Empty: nobody wants it, drop it. The memory
  // is in use until on_bytes() has counted the whole payload or abandon() is called. DataError when the
  // sender had no right to send it.
  Bytes begin(const FrameHeader& header);
  // `bytes` more of that frame's payload are in place; `so_far` counts them too.
  void on_bytes(const FrameHeader& header, std::size_t bytes, std::size_t so_far);

  void on_offer(const FrameHeader& header);

  const std::optional<EnvelopeMismatch>& mismatch() const { return mismatch_; }

  // Forgets all messages and drops what still comes.
  void abandon();

 private:
  struct Segment {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::size_t arrived = 0;
    Block block = {};
  };
  struct Message {
    Envelope envelope;
    Bytes into;  // empty: to be viewed
    std::size_t bytes = 0;
    std::size_t granted = 0;
    std::size_t arrived = 0;
    std::size_t consumed = 0;
    std::vector<bool> begun = {};       // which segments
    std::deque<Segment> segments = {};  // of a view, by offset, not consumed

    bool is_view() const { return into.empty(); }
    bool done() const { return (is_view() ? consumed : arrived) == bytes; }
  };
  // A small message that came before its receive was posted.
  struct Early {
    FrameHeader header;
    Block block = {};
    bool complete = false;
  };

  void post(Message message);
  Message* find(std::uint64_t sequence);
  // `posted`: its receive, if there is one.
  bool comes_eagerly(std::uint64_t sequence, const Message* posted) const;
  bool was_offered(std::uint64_t sequence, const Message* posted) const;
  bool agrees(std::uint64_t sequence, const Message& message, const FrameHeader& header);
  Bytes begin_eager(const FrameHeader& header);
  Bytes begin_data(const FrameHeader& header);
  void deliver_early(std::uint64_t sequence, Message& message);
  void take_from_budget(std::size_t bytes);
  void grant_posted();
  void grant(std::uint64_t sequence, Message& message, std::size_t up_to);
  void retire();

  StreamId stream_;
  std::deque<ControlFrame>& control_;
  BlockPools& pools_;
  std::deque<Message> messages_;  // posted and not done, in order
  std::uint64_t first_ = 0;       // sequence of messages_.front()
  std::uint64_t next_grant_ = 0;  // messages before this one need no more grants
  std::size_t window_used_ = 0;   // granted to views and not consumed
  std::map<std::uint64_t, Early> early_;
  std::size_t early_cost_ = 0;        // of early_
  std::optional<FrameHeader> offer_;  // of a message that is not posted yet
  std::uint64_t eager_taken_ = 0;
  std::uint64_t eager_given_back_ = 0;
  std::optional<EnvelopeMismatch> mismatch_;
  bool closed_ = false;
};

}  // namespace lockstep::transport::tcp
