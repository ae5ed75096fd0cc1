// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/stop_signals.h"

#include <array>
#include <csignal>
#include <ctime>

#include "lockstep/base/signal_handler.h"
#include "lockstep/rendezvous/signal_inbox.h"

namespace lockstep::cli {
namespace {

// What a handler may touch.
volatile std::sig_atomic_t signal_seen = 0;
volatile std::sig_atomic_t seen_at = 0;  // in seconds

std::sig_atomic_t seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::sig_atomic_t>(now.tv_sec);
}

// The same wish may come twice: to this process and to its group, or through the launcher.
constexpr std::sig_atomic_t kSameWish = 2;

void note_signal(int number) {
  if (signal_seen == 0) {
    signal_seen = number;
    seen_at = seconds_now();
  } else if (seconds_now() - seen_at > kSameWish) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

}  // namespace

StopSignals::StopSignals() {
  for (int number : kStopSignals) {
    if (!rendezvous::is_ignored(number)) handle_signal(number, note_signal);
  }
}

StopSignals::~StopSignals() {
  for (int number : kStopSignals) {
    if (!rendezvous::is_ignored(number)) std::signal(number, SIG_DFL);
  }
}

int StopSignals::seen() {
  return static_cast<int>(signal_seen);
}

}  // namespace lockstep::cli
