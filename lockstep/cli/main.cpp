// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "lockstep/cli/run.h"

namespace {

// A standard stream that is closed would give its number to the next file or socket, and what we print would
// go there. Opened for reading only, it refuses what is written, as a closed one does.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  // Writes that fail are reported, with the code that says so; these signals would end us without a word.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return lockstep::cli::run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
