// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/background.h"

#include <sys/eventfd.h>

#include "lockstep/rendezvous/open_files.h"

namespace lockstep::rendezvous {

Background::Background(std::function<void(std::stop_token)> work)
    : failure_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!failure_) cannot("watch a thread");
  thread_ =
      std::jthread([this, work = std::move(work)](std::stop_token stop) { run(work, std::move(stop)); });
}

void Background::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Background::run(const std::function<void(std::stop_token)>& work, std::stop_token stop) {
  try {
    work(std::move(stop));
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
    ::eventfd_write(failure_.get(), 1);
  }
}

}  // namespace lockstep::rendezvous
