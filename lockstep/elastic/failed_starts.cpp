// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/failed_starts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace lockstep::elastic {
namespace {

// Who loses a connection is often here before the loss of the member at its other end is seen: a few are no
// sign of anything, and cost no time.
constexpr std::size_t kSuspicious = 3;
constexpr std::size_t kHopeless = 10;
constexpr Time kFirstWait = std::chrono::milliseconds(500);
constexpr Time kLongestWait = std::chrono::seconds(8);

}  // namespace

void FailedStarts::add(std::string reason, Time now) {
  if (count_ == 0) first_ = now;
  ++count_;
  last_ = now;
  reason_ = std::move(reason);
}

Time FailedStarts::next_start() const {
  if (!is_suspicious()) return last_;
  const std::size_t doublings = std::min<std::size_t>(count_ - kSuspicious, 8);
  return last_ + std::min(kLongestWait, kFirstWait * (1 << doublings));
}

bool FailedStarts::is_suspicious() const {
  return count_ >= kSuspicious;
}

bool FailedStarts::is_hopeless(Time patience, Time now) const {
  return count_ >= kHopeless && now - first_ > patience;
}

std::string FailedStarts::to_string() const {
  return fmt::format("{} generation{} in a row {} ended before {} first step: {}", count_,
                     count_ == 1 ? "" : "s", count_ == 1 ? "has" : "have", count_ == 1 ? "its" : "their",
                     reason_);
}

}  // namespace lockstep::elastic
