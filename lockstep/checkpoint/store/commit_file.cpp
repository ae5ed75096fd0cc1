// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/commit_file.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/input_file.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kBegin = "lockstep-checkpoint ";
constexpr std::uint64_t kMostBytes = 256;

std::string path_in(const std::string& folder) {
  return fmt::format("{}/{}", folder, kCommitFile);
}

}  // namespace

std::string commit_text(const Hash& manifest) {
  return fmt::format("{}{}\n", kBegin, to_text(manifest));
}

std::optional<Hash> parse_commit(std::string_view text) {
  if (!text.starts_with(kBegin) || !text.ends_with('\n')) return std::nullopt;
  text.remove_prefix(kBegin.size());
  text.remove_suffix(1);
  return parse_hash(text);
}

std::optional<Hash> read_commit(const std::string& folder) {
  try {
    return parse_commit(read_text(path_in(folder), kMostBytes));
  } catch (const DataError&) {
    return std::nullopt;
  }
}

bool may_be_committed(const std::string& folder) {
  std::error_code unknown;
  const auto status = std::filesystem::symlink_status(path_in(folder), unknown);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  try {
    return parse_commit(read_text(path_in(folder), kMostBytes)).has_value();
  } catch (const DataError&) {
    return true;
  }
}

}  // namespace lockstep::checkpoint
