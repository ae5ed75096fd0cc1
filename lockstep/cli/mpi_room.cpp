// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/mpi_room.h"

#include <charconv>
#include <limits>
#include <system_error>

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace lockstep::cli {
namespace {

constexpr double kMebibyte = 1 << 20;
// Its own default for the file of a rank, and what else it makes for one.
constexpr std::uint64_t kSegmentBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kBytesBesides = std::uint64_t{64} << 10;

std::uint64_t segment_bytes(const rendezvous::Environment& environment) {
  const auto found = environment.find("OMPI_MCA_btl_vader_segment_size");
  if (found == environment.end()) return kSegmentBytes;
  const std::string& text = found->second;
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() ? bytes : kSegmentBytes;
}

}  // namespace

bool started_by_mpi(const rendezvous::Environment& environment) {
  return environment.contains("OMPI_COMM_WORLD_RANK") || environment.contains("PMIX_RANK");
}

std::filesystem::path mpi_memory_folder(const rendezvous::Environment& environment) {
  const auto given = environment.find("OMPI_MCA_btl_vader_backing_directory");
  if (given != environment.end()) return given->second;
  std::filesystem::path usual = "/dev/shm";
  if (::access(usual.c_str(), W_OK) == 0) return usual;
  std::error_code error;
  return std::filesystem::temp_directory_path(error);
}

std::uint64_t mpi_memory_bytes(int ranks, const rendezvous::Environment& environment) {
  if (environment.contains("OMPI_MCA_btl")) return 0;
  const auto count = static_cast<std::uint64_t>(ranks);
  const std::uint64_t segment = segment_bytes(environment);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return segment > kMost / count - kBytesBesides ? kMost : count * (segment + kBytesBesides);
}

std::optional<std::string> too_little_room_for_mpi(int ranks, const rendezvous::Environment& environment) {
  const std::filesystem::path folder = mpi_memory_folder(environment);
  struct statvfs filesystem {};
  if (::statvfs(folder.c_str(), &filesystem) != 0) return std::nullopt;
  const std::uint64_t free = std::uint64_t{filesystem.f_bavail} * filesystem.f_frsize;
  const std::uint64_t needed = mpi_memory_bytes(ranks, environment);
  if (free >= needed) return std::nullopt;
  return fmt::format(
      "Open MPI needs {:.1f} MiB in {} for {} ranks of one host, but {:.1f} MiB are free there: make it "
      "larger, "
      "as root with `mount -o remount,size=1G {}` or in a container with --shm-size=1g",
      static_cast<double>(needed) / kMebibyte, folder.native(), ranks, static_cast<double>(free) / kMebibyte,
      folder.native());
}

}  // namespace lockstep::cli
