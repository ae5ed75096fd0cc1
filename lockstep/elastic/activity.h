// SPDX-License-Identifier: Apache-2.0
//
// What the thread that trains is doing, as the beats of its process tell it (message.h). It is taken to work,
// and has to get on, unless it says that it waits.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::elastic {

class Activity {
 public:
  // For the time of a wait whose end depends on others, or on what has a deadline of its own: nobody has to
  // get on meanwhile. Waits may nest; the end of one is getting on.
  class Wait {
   public:
    // Null: of nobody.
    explicit Wait(Activity* activity) : activity_(activity) {
      if (activity_ != nullptr) activity_->begin_wait();
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait() {
      if (activity_ != nullptr) activity_->end_wait();
    }

   private:
    Activity* activity_;
  };

  // It has done something; any thread.
  void get_on() { progress_.fetch_add(1, std::memory_order_relaxed); }

  void begin_wait() { waits_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() {
    waits_.fetch_sub(1, std::memory_order_relaxed);
    if (!awaits_disk()) get_on();
  }

  // While it waits for this process's own disk it has to get on, and asks others again and again meanwhile:
  // that is neither waiting nor getting on then. Any thread.
  void set_awaiting_disk(bool awaits) {
    if (awaits_disk_.exchange(awaits, std::memory_order_relaxed) != awaits) get_on();
  }
  // The disk has done something, on any thread: that counts while it is waited for.
  void get_on_with_disk() {
    if (awaits_disk()) get_on();
  }

  bool waits() const { return waits_.load(std::memory_order_relaxed) > 0 && !awaits_disk(); }
  std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

 private:
  bool awaits_disk() const { return awaits_disk_.load(std::memory_order_relaxed); }

  std::atomic<std::uint64_t> progress_ = 0;
  std::atomic<int> waits_ = 0;
  std::atomic<bool> awaits_disk_ = false;
};

}  // namespace lockstep::elastic
