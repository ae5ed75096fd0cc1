// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/made_folder.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {

MadeFolder::MadeFolder(std::filesystem::path path)
    : path_(std::move(path)), absolute_(std::filesystem::absolute(path_).lexically_normal()) {
  if (!absolute_.has_filename()) absolute_ = absolute_.parent_path();
  std::error_code failure;
  for (std::filesystem::path above = absolute_; !std::filesystem::exists(above, failure) && !failure;
       above = above.parent_path()) {
    uppermost_ = above;
  }
  std::filesystem::create_directories(absolute_, failure);
  if (failure) {
    throw UsageError(fmt::format("cannot make the folder {}: {}", path_.string(), failure.message()));
  }
}

MadeFolder::~MadeFolder() {
  if (uppermost_.empty()) return;
  std::filesystem::path folder = absolute_;
  // Fails, as it should, when there is something in it.
  while (::rmdir(folder.c_str()) == 0 && folder != uppermost_) folder = folder.parent_path();
}

}  // namespace lockstep::cli
