// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <initializer_list>

#include "lockstep/transport/connect/connection.h"

namespace lockstep::rendezvous {

// Whether this process ignores the signal, as under nohup, or in the background of a script.
bool is_ignored(int number);

// Signals that this process takes through a descriptor instead of being ended by them; as before when it is
// destroyed. Those that it ignores stay ignored. Make it before other threads begin: it blocks the signals in
// the thread that makes it, and in those that this thread starts.
class SignalInbox {
 public:
  // UsageError when there is no descriptor left.
  SignalInbox(std::initializer_list<int> taken);
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int fd() const { return fd_.get(); }  // readable when a signal has come
  const sigset_t& mask_before() const { return before_; }

  // The next signal, 0 when there is none.
  int take();

 private:
  sigset_t before_{};
  transport::Descriptor fd_;
};

}  // namespace lockstep::rendezvous
