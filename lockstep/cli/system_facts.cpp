// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/system_facts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lockstep/cli/version.h"
#include "lockstep/rendezvous/host_id.h"

namespace lockstep::cli {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// "[advise]" in "always within_size [advise] never deny force".
std::string bracketed(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open);
  return close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

// The folder of this process's control group (version 2), and those above it: a limit may stand in any of
// them.
std::vector<std::filesystem::path> control_groups() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  std::vector<std::filesystem::path> folders = {root};
  while (std::getline(in, line)) {
    if (!line.starts_with("0::/")) continue;
    std::filesystem::path folder = root;
    for (const auto& part : std::filesystem::path(line.substr(4))) {
      folder /= part;
      folders.push_back(folder);
    }
  }
  return folders;
}

template <typename T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void read_control_group(SystemFacts& facts) {
  for (const std::filesystem::path& folder : control_groups()) {
    if (const auto bytes = number_in(first_line(folder / "memory.max")))
      lower(facts.memory_limit_bytes, *bytes);
    std::istringstream cpu(first_line(folder / "cpu.max"));
    double quota = 0;
    double period = 0;
    if (cpu >> quota >> period && period > 0) lower(facts.cores_quota, quota / period);
  }
}

void read_memory(SystemFacts& facts) {
  std::ifstream in("/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  std::string unit;
  while (in >> name >> kibibytes && std::getline(in, unit)) {
    if (name == "MemTotal:") facts.memory_bytes = kibibytes * 1024;
    if (name == "MemAvailable:") facts.memory_available_bytes = kibibytes * 1024;
  }
  facts.page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  facts.huge_pages_for_shared_memory =
      bracketed(first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) facts.dev_shm_free_bytes = std::uint64_t{shm.f_bavail} * shm.f_frsize;
}

void read_cores(SystemFacts& facts) {
  facts.cores_online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t usable;
  CPU_ZERO(&usable);
  facts.cores_usable = ::sched_getaffinity(0, sizeof(usable), &usable) == 0 ? CPU_COUNT(&usable) : 0;
  facts.simd = simd_target();
}

}  // namespace

SystemFacts read_system_facts() {
  SystemFacts facts;
  facts.host_name = rendezvous::host_name();
  utsname system{};
  if (::uname(&system) == 0) facts.kernel = std::string(system.sysname) + " " + system.release;
  read_cores(facts);
  read_memory(facts);
  read_control_group(facts);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    facts.open_files_limit = files.rlim_cur;
    facts.open_files_hard_limit = files.rlim_max;
  }
  return facts;
}

}  // namespace lockstep::cli
