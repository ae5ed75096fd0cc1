// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

// From now on the signal calls `handler`, which may only do what a handler may, on a stack of its own, and
// interrupted system calls go on. Call it on the main thread, which then takes the signals of the process:
// generated code of products uses the stack pointer as one more register, and a handler on the stack that it
// points to would write over other memory.
void handle_signal(int number, void (*handler)(int));

}  // namespace lockstep
