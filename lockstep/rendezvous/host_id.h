// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::rendezvous {

inline constexpr std::size_t kMaxHostId = 128;

// What tells hosts apart. Processes with equal parts can share memory and reach each other's sockets; two
// network namespaces or two containers on one machine count as two hosts.
struct HostParts {
  std::string boot_id;
  std::uint64_t network_namespace = 0;  // inode
  std::uint64_t shared_memory = 0;      // device of /dev/shm
};

std::string host_id_of(const HostParts& parts);

// The id of this process's host. Parts that the system does not tell count as 0, and a missing boot id as
// the host name.
std::string detect_host_id();

// "node7"; for messages, not for telling hosts apart.
std::string host_name();

// True for 1 to kMaxHostId characters of letters, digits and "._:-".
bool is_valid_host_id(std::string_view text);

}  // namespace lockstep::rendezvous
