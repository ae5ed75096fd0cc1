// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/signal_inbox.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "lockstep/rendezvous/open_files.h"

namespace lockstep::rendezvous {

SignalInbox::SignalInbox(std::initializer_list<int> taken) {
  sigset_t set{};
  ::sigemptyset(&set);
  for (int number : taken) ::sigaddset(&set, number);
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
