// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/host_id.h"

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/rendezvous/text.h"

namespace lockstep::rendezvous {
namespace {

std::string read_boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  in >> id;
  return is_valid_host_id(id) ? id : host_name();
}

}  // namespace

std::string host_id_of(const HostParts& parts) {
  return fmt::format("{}.net{}.shm{}", parts.boot_id, parts.network_namespace, parts.shared_memory);
}

std::string detect_host_id() {
  HostParts parts;
  parts.boot_id = read_boot_id();
  struct stat info {};
  if (stat("/proc/self/ns/net", &info) == 0) parts.network_namespace = info.st_ino;
  if (stat("/dev/shm", &info) == 0) parts.shared_memory = info.st_dev;
  return host_id_of(parts);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

bool is_valid_host_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHostId && is_plain(text, "._:-");
}

}  // namespace lockstep::rendezvous
