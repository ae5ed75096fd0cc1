// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/system_facts.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lockstep/base/host_memory.h"
#include "lockstep/base/kernel_files.h"
#include "lockstep/cli/version.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/open_files.h"

namespace lockstep::cli {
namespace {

// "[advise]" in "always within_size [advise] never deny force".
std::string bracketed(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open);
  return close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

void read_core_quota(SystemFacts& facts) {
  for (const std::filesystem::path& folder : control_groups()) {
    std::istringstream cpu(first_line(folder / "cpu.max"));
    double quota = 0;
    double period = 0;
    if (!(cpu >> quota >> period) || period <= 0) continue;
    facts.cores_quota = std::min(facts.cores_quota.value_or(quota / period), quota / period);
  }
}

void read_memory(SystemFacts& facts) {
  const HostMemory memory = read_host_memory();
  facts.memory_bytes = memory.total;
  facts.memory_available_bytes = memory.available;
  facts.memory_limit_bytes = memory.group_limit;
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
  read_core_quota(facts);
  const rendezvous::OpenFilesLimits files = rendezvous::open_files_limits();
  facts.open_files_limit = files.now;
  facts.open_files_hard_limit = files.most;
  return facts;
}

}  // namespace lockstep::cli
