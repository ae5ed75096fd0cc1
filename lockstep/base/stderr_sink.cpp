// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/stderr_sink.h"

#include <climits>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <unistd.h>

namespace lockstep::log {
namespace {

constexpr int kPatienceMs = 100;

// Keeps a write to a pipe without reader from ending the process, whatever the process does about SIGPIPE.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }

  ~WithoutSigpipe() {
    const timespec at_once = {};
    if (!was_pending_) sigtimedwait(&sigpipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t sigpipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

// A pipe that is writable has room for PIPE_BUF bytes, so the write after it does not block.
bool is_writable() {
  pollfd stream = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&stream, 1, kPatienceMs) == 1 && (stream.revents & POLLOUT) != 0;
}

}  // namespace

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (line.size() > PIPE_BUF) {
    line.resize(PIPE_BUF);
    line[PIPE_BUF - 1] = '\n';
  }
  const WithoutSigpipe guard;
  if (!is_writable()) return;
  // What was not written is lost; there is nowhere to say so.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace lockstep::log
