// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous {

struct HostSlots {
  std::string host;
  int slots = 1;  // processes to start there, at least 1

  bool operator==(const HostSlots&) const = default;
};

// Lines of "host" or "host slots=8"; '#' begins a comment, empty lines are ignored. `file` is only named in
// errors: UsageError as "hosts.txt:3: ...". At least one host, no host twice, at most kMaxWorld slots
// together.
std::vector<HostSlots> parse_hostfile(std::string_view text, std::string_view file);

// The same from a file of at most 1 MiB.
std::vector<HostSlots> load_hostfile(const std::filesystem::path& path);

int total_slots(const std::vector<HostSlots>& hosts);

}  // namespace lockstep::rendezvous
