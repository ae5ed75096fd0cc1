// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

// What folders of a store are called.
struct FolderName {
  enum class Kind {
    plain,    // step-N: a checkpoint, or what is left of one that is being removed
    partial,  // step-N.partial-ID: what the attempt ID has written so far
    old,      // step-N.old-ID: a checkpoint that the attempt ID is about to replace
  };
  std::int64_t step = 0;
  Kind kind = Kind::plain;
  std::string id;  // of those that are not plain: [A-Za-z0-9-]+

  bool operator==(const FolderName&) const = default;
};

std::string to_text(const FolderName& name);
// None for anything that to_text() does not make.
std::optional<FolderName> parse_folder_name(std::string_view text);

}  // namespace lockstep::checkpoint
