// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {

std::filesystem::path temporary_files() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder;
  const char* named = std::getenv("TMPDIR");
  throw UsageError(fmt::format(
      "cannot use {} for temporary files: {}; set TMPDIR to a folder that can be written",
      named != nullptr ? fmt::format("TMPDIR={}", named) : "the default folder", error.message()));
}

TemporaryFolder::TemporaryFolder(const std::filesystem::path& where) {
  std::string name = (where / "lockstep-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw UsageError(fmt::format("cannot make a folder like {}: {}; set TMPDIR to one that can be written",
                                 name, std::strerror(errno)));
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep::cli
