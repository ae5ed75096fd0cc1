// SPDX-License-Identifier: Apache-2.0
//
// The limit on open files (ulimit -n), which many ranks on one host reach first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rendezvous {

struct OpenFilesLimits {
  std::uint64_t now = 0;
  std::uint64_t most = 0;  // how far this process may raise it
};
OpenFilesLimits open_files_limits();

// Why `needed` files are too many and how to raise the limit: "... needs about 40 open files, but ..."; none
// when they are not. Pure.
std::optional<std::string> too_many_files(std::string_view who, std::uint64_t needed, OpenFilesLimits limits);

// UsageError with that sentence. To be called before anything is started that could not be finished.
void require_open_files(std::string_view who, std::uint64_t needed);

// UsageError for a system call that has just failed: "cannot <what>: <errno>", and the limit when that is
// why.
[[noreturn]] void cannot(std::string_view what);

}  // namespace lockstep::rendezvous
