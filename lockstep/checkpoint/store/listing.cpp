// SPDX-License-Identifier: Apache-2.0
//
// What is in a store, and where stores and checkpoints are.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/commit_file.h"
#include "lockstep/checkpoint/store/store.h"

namespace lockstep::checkpoint {
namespace {

using Kind = FolderName::Kind;

// Those with names that a store gives, the newest first.
std::vector<FolderName> folders_in(const std::string& store) {
  std::error_code error;
  std::vector<FolderName> found;
  for (std::filesystem::directory_iterator entry(store, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = parse_folder_name(entry->path().filename().string());
    std::error_code ignored;
    if (name && entry->is_directory(ignored)) found.push_back(*name);
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
    throw UsageError(fmt::format("cannot list {}: {}", store, error.message()));
  }
  std::sort(found.begin(), found.end(), [](const FolderName& a, const FolderName& b) {
    return std::tie(b.step, a.kind, a.id) < std::tie(a.step, b.kind, b.id);
  });
  return found;
}

std::string path_of(const std::string& store, const FolderName& name) {
  return store + "/" + to_text(name);
}

bool is_committed(const std::string& store, const FolderName& name) {
  return name.kind != Kind::partial && read_commit(path_of(store, name)).has_value();
}

std::string reason_of(const FolderName& name) {
  if (name.kind == Kind::partial) return "is being written, or its writer died";
  if (name.kind == Kind::old) return "was replaced, and is being removed";
  return "was never committed, or is being removed";
}

bool is_checkpoint(const std::string& path) {
  return std::filesystem::exists(path + "/" + std::string(kManifestFile)) ||
         std::filesystem::exists(path + "/" + std::string(kCommitFile));
}

}  // namespace

std::vector<Listed> CheckpointStore::committed() const {
  std::vector<Listed> found;
  for (const FolderName& name : folders_in(folder_)) {
    if (is_committed(folder_, name)) found.push_back({name.step, path_of(name)});
  }
  return found;
}

std::vector<Incomplete> CheckpointStore::incomplete() const {
  std::vector<Incomplete> found;
  for (const FolderName& name : folders_in(folder_)) {
    if (is_committed(folder_, name)) continue;
    found.push_back({{name.step, path_of(name)}, reason_of(name), name.kind == Kind::partial});
  }
  return found;
}

std::optional<std::string> find_store(const std::string& path) {
  for (const std::string& store : {path, path + "/checkpoints"}) {
    if (!folders_in(store).empty()) return store;
  }
  return std::nullopt;
}

bool holds_checkpoints(const std::string& path) {
  const std::filesystem::path folder = path;
  return std::filesystem::exists(folder / kManifestFile) || std::filesystem::exists(folder / "latest") ||
         std::filesystem::exists(folder / "checkpoints");
}

std::string find_checkpoint(const std::string& path) {
  if (is_checkpoint(path)) return path;
  const auto store = find_store(path);
  const std::vector<Listed> committed = store ? CheckpointStore(*store).committed() : std::vector<Listed>();
  if (!committed.empty()) return committed.front().path;
  if (store) {
    throw UsageError(fmt::format(
        "no checkpoint in {} was committed: `lockstep checkpoint ls {}` says what is there", *store, path));
  }
  throw UsageError(fmt::format("{} {}: name the folder of one (step-N), of several, or of a run", path,
                               std::filesystem::exists(path) ? "has no checkpoint" : "does not exist"));
}

}  // namespace lockstep::checkpoint
