// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <functional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/store/commit_file.h"

#include "tests/cli/program.h"

namespace lockstep::testing {

// Makes the checkpoint one that says something else, and is committed as such.
inline void rewrite_manifest(const std::string& checkpoint,
                             const std::function<void(nlohmann::ordered_json&)>& change) {
  const std::string path = checkpoint + "/" + std::string(checkpoint::kManifestFile);
  nlohmann::ordered_json manifest = nlohmann::ordered_json::parse(read_file(path));
  change(manifest);
  const std::string text = manifest.dump() + "\n";
  std::ofstream(path) << text;
  std::ofstream(checkpoint + "/" + std::string(checkpoint::kCommitFile))
      << checkpoint::commit_text(hash_of(std::as_bytes(std::span(text))));
}

}  // namespace lockstep::testing
