// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/made_folder.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {

MadeFolder::MadeFolder(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code failure;
  is_new_ = std::filesystem::create_directories(path_, failure);
  if (failure) {
    throw UsageError(fmt::format("cannot make the folder {}: {}", path_.string(), failure.message()));
  }
}

MadeFolder::~MadeFolder() {
  if (is_new_) ::rmdir(path_.c_str());  // fails, as it should, when there is something in it
}

}  // namespace lockstep::cli
