// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "lockstep/cli/run.h"

int main(int argc, char** argv) {
  // A reader that goes away must not kill a rank; writes then fail instead.
  std::signal(SIGPIPE, SIG_IGN);
  return lockstep::cli::run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
