// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <stop_token>
#include <thread>

#include "lockstep/transport/connect/connection.h"

namespace lockstep::rendezvous {

// Work in a thread of its own, whose failure is kept for the thread that waits for something else. Destroying
// it asks the work to stop and waits for its end.
class Background {
 public:
  // UsageError when there is no descriptor left.
  explicit Background(std::function<void(std::stop_token)> work);

  void request_stop() { thread_.request_stop(); }
  // Asks the work to stop and waits for its end, after which failed() does not change.
  void stop();

  int fd() const { return failure_.get(); }  // readable once the work has failed
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[noreturn]] void rethrow() const { std::rethrow_exception(error_); }  // when it has failed

 private:
  void run(const std::function<void(std::stop_token)>& work, std::stop_token stop);

  transport::Descriptor failure_;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
  std::jthread thread_;  // the last: it uses the others
};

}  // namespace lockstep::rendezvous
