// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

// What this machine offers to this process. Empty or none: the system does not tell.
struct SystemFacts {
  std::string host_name;
  std::string kernel;
  std::string simd;
  int cores_online = 0;
  int cores_usable = 0;               // affinity of this process
  std::optional<double> cores_quota;  // limit of the control group, in cores
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_available_bytes = 0;
  std::optional<std::uint64_t> memory_limit_bytes;  // of the control group
  std::uint64_t page_bytes = 0;
  std::string huge_pages_for_shared_memory;  // "always", "advise", "never", ...
  std::optional<std::uint64_t> dev_shm_free_bytes;
  std::uint64_t open_files_limit = 0;  // soft
  std::uint64_t open_files_hard_limit = 0;
};

SystemFacts read_system_facts();

}  // namespace lockstep::cli
