// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/signal_handler.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>

#include <sys/mman.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

// Registers of the largest processors take 11 KiB of it.
constexpr std::size_t kStackBytes = 64 << 10;

// For the rest of the process: a handler may run at any time.
void give_signal_stack() {
  stack_t now = {};
  ::sigaltstack(nullptr, &now);
  if ((now.ss_flags & SS_DISABLE) == 0) return;
  void* memory = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const stack_t stack = {.ss_sp = memory, .ss_flags = 0, .ss_size = kStackBytes};
  if (memory == MAP_FAILED || ::sigaltstack(&stack, nullptr) != 0) {
    throw UsageError(std::string("cannot take signals: no memory for their stack: ") + std::strerror(errno));
  }
}

}  // namespace

void handle_signal(int number, void (*handler)(int)) {
  give_signal_stack();
  struct sigaction action = {};
  action.sa_handler = handler;
  // Not deferred: the next one would go to another thread, which has no such stack.
  action.sa_flags = SA_ONSTACK | SA_RESTART | SA_NODEFER;
  ::sigaction(number, &action, nullptr);
}

}  // namespace lockstep
