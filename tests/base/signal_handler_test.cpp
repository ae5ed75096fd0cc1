// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/signal_handler.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep {
namespace {

volatile std::sig_atomic_t times = 0;

void count(int) {
  times = times + 1;
}

#if defined(__x86_64__)
// As generated code does it: `place` is the stack pointer while the signal comes.
void signal_with_stack_at(std::byte* place, int number) {
  long result = SYS_kill;
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[place], %%rsp\n\t"
      "syscall\n\t"
      "movq %%rbx, %%rsp\n\t"
      : "+a"(result)
      : [place] "r"(place), "D"(static_cast<long>(::getpid())), "S"(static_cast<long>(number))
      : "rcx", "r11", "rbx", "memory", "cc");
  ASSERT_EQ(result, 0);
}

TEST(SignalHandler, WritesNothingWhereTheStackPointerPoints) {
  handle_signal(SIGUSR1, count);
  std::vector<std::byte> memory(1 << 16, std::byte{7});
  times = 0;
  signal_with_stack_at(memory.data() + memory.size() / 2, SIGUSR1);
  // Under the thread sanitizer the handler is called by the next function of the C library that may wait.
  for (int i = 0; i < 1000 && times == 0; ++i) ::usleep(1000);
  std::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(times, 1);
  EXPECT_EQ(std::ranges::count(memory, std::byte{7}), std::ssize(memory));
}
#endif

TEST(SignalHandler, IsCalledForEverySignal) {
  handle_signal(SIGUSR1, count);
  times = 0;
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);
  std::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(times, 2);
}

}  // namespace
}  // namespace lockstep
