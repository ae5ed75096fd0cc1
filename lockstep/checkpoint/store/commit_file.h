// SPDX-License-Identifier: Apache-2.0
//
// The file COMMIT, whose presence in the folder of a checkpoint makes it one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/hash.h"

namespace lockstep::checkpoint {

inline constexpr std::string_view kCommitFile = "COMMIT";
inline constexpr std::string_view kManifestFile = "manifest.json";

// "lockstep-checkpoint HASH\n", with the hash of the manifest.
std::string commit_text(const Hash& manifest);
// None for any other text, such as the part of one that a crash has left.
std::optional<Hash> parse_commit(std::string_view text);

// What the folder's COMMIT says; none when it has no whole one.
std::optional<Hash> read_commit(const std::string& folder);

// False when the folder surely has no whole COMMIT. When a disk does not let us look, it may have one: what
// is in the folder must not be removed then.
bool may_be_committed(const std::string& folder);

}  // namespace lockstep::checkpoint
