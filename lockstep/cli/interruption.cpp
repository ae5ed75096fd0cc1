// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/interruption.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/signal_handler.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/printable.h"
#include "lockstep/rendezvous/open_files.h"
#include "lockstep/rendezvous/signal_inbox.h"

namespace lockstep::cli {
namespace {

// So long a command may take to come to a place where it asks.
constexpr std::chrono::seconds kPatience{2};
constexpr std::array kTaken = {SIGINT, SIGTERM, SIGHUP};

// What a handler may touch. A handler and not a SignalInbox: libraries have started threads when they were
// loaded, and any of these may get a signal.
volatile std::sig_atomic_t watcher_descriptor = -1;

void pass_on(int number) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] const auto written = ::write(watcher_descriptor, &byte, 1);
  errno = before;
}

// Those that were ignored stay so.
template <typename Set>
void for_all_taken(Set set) {
  for (const int number : kTaken) {
    if (!rendezvous::is_ignored(number)) set(number);
  }
}

void leave_to_kernel() {
  for_all_taken([](int number) { std::signal(number, SIG_DFL); });
}

}  // namespace

Interruption::Interruption(std::string what_remains) : what_remains_(std::move(what_remains)) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) rendezvous::cannot("take signals");
  signals_ = transport::Descriptor(ends[0]);
  to_watcher_ = transport::Descriptor(ends[1]);
  watcher_ = std::jthread([this] { watch(); });
  watcher_descriptor = to_watcher_.get();
  for_all_taken([](int number) { handle_signal(number, pass_on); });
}

Interruption::~Interruption() {
  // Once it has come, the program ends; a second wish must not hide what it has to say.
  if (has_come())
    for_all_taken([](int number) { std::signal(number, SIG_IGN); });
  else
    leave_to_kernel();
  pass_on(0);
  watcher_.join();
  watcher_descriptor = -1;
}

void Interruption::set_what_remains(std::string what_remains) {
  const std::lock_guard lock(mutex_);
  what_remains_ = std::move(what_remains);
}

std::string Interruption::what_remains() const {
  const std::lock_guard lock(mutex_);
  return what_remains_;
}

void Interruption::check() const {
  if (const int number = signal_) throw Interrupted(number, what_remains());
}

void Interruption::watch() {
  unsigned char number = 0;
  if (::read(signals_.get(), &number, 1) != 1 || number == 0) return;
  signal_ = number;
  const Deadline deadline = Deadline::after(kPatience);
  while (!deadline.passed()) {  // the same wish may come twice
    pollfd entry = {signals_.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0) continue;
    if (::read(signals_.get(), &number, 1) != 1 || number == 0) return;
  }
  leave_to_kernel();  // nobody may read what comes now, and a second wish should end that
  std::cerr << "lockstep: " << printable(Interrupted(signal_, what_remains()).what()) << "\n" << std::flush;
  std::_Exit(kSignalBase + signal_);
}

}  // namespace lockstep::cli
