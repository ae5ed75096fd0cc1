// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

std::string place(const CommFailure& failure) {
  return fmt::format("{} #{} on {}", failure.operation, failure.sequence, failure.group);
}

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

PeerLost::PeerLost(const CommFailure& failure)
    : CommError(
          fmt::format("{}: rank {} is gone (its process ended or its connection closed) after {} of {} bytes",
                      place(failure), failure.peer, failure.done_bytes, failure.total_bytes)) {}

Timeout::Timeout(const CommFailure& failure)
    : CommError(fmt::format("{}: rank {} silent for {:.1f} s after {} of {} bytes", place(failure),
                            failure.peer, seconds(failure.waited), failure.done_bytes, failure.total_bytes)) {
}

void check_failed(const char* condition, const std::string& message, const char* file, int line) {
  throw InternalError(fmt::format("internal error at {}:{}: {} does not hold{}{}; please report this", file,
                                  line, condition, message.empty() ? "" : ": ", message));
}

}  // namespace lockstep
