// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {

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
