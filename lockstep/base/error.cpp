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

std::string progress(const CommFailure& failure) {
  if (failure.total_bytes == 0) return "";
  return fmt::format(" after {} of {} bytes", failure.done_bytes, failure.total_bytes);
}

// " after 4096 of 65536 bytes and 0.3 s of waiting", as far as it is known.
std::string how_far(const CommFailure& failure) {
  std::string words = progress(failure);
  if (failure.waited.count() == 0) return words;
  return fmt::format("{} {} {:.1f} s of waiting", words, words.empty() ? "after" : "and",
                     seconds(failure.waited));
}

}  // namespace

PeerLost::PeerLost(const CommFailure& failure)
    : CommError(fmt::format("{}: rank {} is gone (its process ended or its connection closed){}",
                            place(failure), failure.peer, how_far(failure))) {}

Timeout::Timeout(const CommFailure& failure)
    : CommError(fmt::format("{}: rank {} silent for {:.1f} s{}", place(failure), failure.peer,
                            seconds(failure.waited), progress(failure))) {}

void check_failed(const char* condition, const std::string& message, const char* file, int line) {
  throw InternalError(fmt::format("internal error at {}:{}: {} does not hold{}{}; please report this", file,
                                  line, condition, message.empty() ? "" : ": ", message));
}

}  // namespace lockstep
