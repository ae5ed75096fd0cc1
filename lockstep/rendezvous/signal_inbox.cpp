// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/signal_inbox.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "lockstep/rendezvous/open_files.h"

namespace lockstep::rendezvous {

bool is_ignored(int number) {
  struct sigaction action = {};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

SignalInbox::SignalInbox(std::initializer_list<int> taken) {
  sigset_t set{};
  ::sigemptyset(&set);
  for (int number : taken) {
    if (!is_ignored(number)) ::sigaddset(&set, number);  // a descriptor would give it all the same
  }
  fd_ = transport::Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) cannot("take signals");
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalInbox::~SignalInbox() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalInbox::take() {
  signalfd_siginfo info{};
  return ::read(fd_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace lockstep::rendezvous
