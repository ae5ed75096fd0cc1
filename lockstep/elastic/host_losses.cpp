// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/host_losses.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace lockstep::elastic {

std::optional<std::string> HostLosses::join(const std::string& name, std::size_t members, Time now) {
  if (limits_.window == Time(0)) return std::nullopt;
  Host& host = hosts_[name];
  forget_old(host, now);
  const std::size_t most = std::max(host.most_members, members);
  if (host.losses.size() > limits_.per_member * most) {
    return fmt::format("{} workers of its host were lost within {:.0f} s", host.losses.size(),
                       std::chrono::duration<double>(limits_.window).count());
  }
  host.most_members = most;
  return std::nullopt;
}

void HostLosses::lose(const std::string& name, Time now) {
  if (limits_.window == Time(0)) return;
  Host& host = hosts_[name];
  host.losses.push_back(now);
  forget_old(host, now);
}

void HostLosses::forget_old(Host& host, Time now) const {
  while (!host.losses.empty() && now - host.losses.front() > limits_.window) host.losses.pop_front();
}

}  // namespace lockstep::elastic
