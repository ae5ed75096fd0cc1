// SPDX-License-Identifier: Apache-2.0
//
// Sleeping and waking without a lost wake-up. The sleeper makes its `sleeping` word odd, then looks once more
// for news and only then sleeps; the notifier writes its news, then looks at the word and rings if it is odd.
// A full fence between the two steps on each side makes at least one of them see the other. Ringing an awake
// rank costs a load.
#pragma once

#include <cstdint>

#include "lockstep/transport/memory/words.h"

namespace lockstep::transport {

// A rank's own bell: an eventfd that becomes readable when somebody rings it.
class Doorbell {
 public:
  // `sleeping` is this rank's shared word. UsageError when the system has no descriptor left.
  explicit Doorbell(Word& sleeping);
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;
  ~Doorbell();

  int fd() const { return fd_; }

  // From arm() on, notifiers ring. The caller then looks for news before it sleeps.
  void arm();
  void disarm();
  bool armed() const { return (sleeping_.load(std::memory_order_relaxed) & 1) != 0; }

  // Makes the descriptor unreadable again; true if it was readable.
  bool drain() const;

  // From any thread or signal handler.
  void ring() const;

 private:
  Word& sleeping_;
  int fd_;
};

// How a rank rings the bell of a peer. Owns neither the word nor the descriptor.
class Bell {
 public:
  Bell(const Word& sleeping, int fd) : sleeping_(&sleeping), fd_(fd) {}

  // To be called after the news has been written.
  void ring();

 private:
  const Word* sleeping_;
  int fd_;
  std::uint64_t rung_ = 0;  // the sleep (value of the word) we have ended already: once is enough
};

}  // namespace lockstep::transport
