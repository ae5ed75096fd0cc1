// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "lockstep/elastic/liveness.h"

namespace lockstep::elastic {

struct LossLimits {
  // For each member that a host had at a time it may lose so many within `window`; with more it is flapping.
  std::size_t per_member = 0;
  Time window = Time(0);  // 0: any number
};

// Which hosts lose their members again and again, whoever starts them there. A lost member costs all others a
// step: a host that gives no more than that is better left out.
class HostLosses {
 public:
  explicit HostLosses(const LossLimits& limits) : limits_(limits) {}

  // A new member, one of `members` that the host has then. Why it gets no place; nothing when it does.
  std::optional<std::string> join(const std::string& host, std::size_t members, Time now);
  void lose(const std::string& host, Time now);

 private:
  struct Host {
    std::size_t most_members = 0;
    std::deque<Time> losses;  // inside the window
  };
  void forget_old(Host& host, Time now) const;

  LossLimits limits_;
  std::map<std::string, Host> hosts_;
};

}  // namespace lockstep::elastic
