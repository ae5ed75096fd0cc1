// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <zlib.h>

#include "tests/support/files.h"

namespace lockstep::data::testing {

// As `gzip` would compress it.
inline std::string gzip_of(const std::string& content) {
  const test::TemporaryFolder folder;
  gzFile file = gzopen(folder.path("f").c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return folder.read("f");
}

}  // namespace lockstep::data::testing
