// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/store.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/base/input_file.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/store/commit_file.h"
#include "lockstep/checkpoint/store/shard_writer.h"

namespace lockstep::checkpoint {
namespace {

using Kind = FolderName::Kind;

constexpr std::string_view kLatestFile = "latest";

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

std::string parent_of(const std::string& folder) {
  const std::filesystem::path path(folder);
  return (path.has_filename() ? path : path.parent_path()).parent_path().string();
}

ShardFile read_report(const std::string& staging, int rank) {
  const std::string path = fmt::format("{}/{}", staging, report_name(rank));
  if (!exists(path)) {
    throw UsageError(
        fmt::format("{} is missing: all ranks must write into the same folder; put the run's folder on a "
                    "disk that all hosts "
                    "share",
                    path));
  }
  ShardFile file = parse_shard_file(read_text(path, kMaxManifestBytes), path);
  const std::string shard = fmt::format("{}/{}", staging, file.name);
  if (!exists(shard)) throw UsageError(fmt::format("{} is missing, but its rank has written it", shard));
  return file;
}

std::vector<ShardFile> read_reports(const std::string& staging, int ranks,
                                    const BetweenBlocks& between_blocks) {
  std::vector<ShardFile> files;
  for (int rank = 0; rank < ranks; ++rank) {
    between_blocks();
    files.push_back(read_report(staging, rank));
  }
  return files;
}

// In place of the reports of the ranks, which it has as its files; its hash.
Hash write_manifest(Disk& disk, const std::string& staging, Manifest manifest,
                    const BetweenBlocks& between_blocks) {
  std::sort(manifest.tensors.begin(), manifest.tensors.end(),
            [](const LogicalTensor& a, const LogicalTensor& b) { return a.name < b.name; });
  const std::string path = fmt::format("{}/{}", staging, kManifestFile);
  const std::string text = to_json(manifest);
  parse_manifest(text, path);  // what a reader would refuse is never written
  between_blocks();
  write_synced(disk, path, text);
  LOCKSTEP_FAILPOINT("checkpoint.manifest.written");
  for (int rank = 0; rank < std::ssize(manifest.files); ++rank) {
    between_blocks();
    disk.remove_all(fmt::format("{}/{}", staging, report_name(rank)));
  }
  disk.sync_folder(staging);
  return hash_of(std::as_bytes(std::span(text)));
}

// What fails here is told to people; nothing depends on it.
void attempt(const std::function<void()>& action) noexcept {
  try {
    action();
  } catch (const std::exception& error) {
    log::warning(error.what());
  }
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, Disk& disk) : folder_(std::move(folder)), disk_(disk) {}

std::string CheckpointStore::path_of(const FolderName& name) const {
  return folder_ + "/" + to_text(name);
}

std::string CheckpointStore::staging_folder(std::int64_t step, const std::string& id) const {
  const FolderName name = {step, Kind::partial, id};
  LOCKSTEP_CHECK(parse_folder_name(to_text(name)) == name, "a bad step or id: " + to_text(name));
  return path_of(name);
}

void CheckpointStore::begin(std::int64_t step, const std::string& id) {
  const std::string staging = staging_folder(step, id);
  under_way_.insert(staging);
  disk_.make_folder(staging);
  disk_.sync_folder(folder_);
  disk_.sync_folder(parent_of(folder_));
  LOCKSTEP_FAILPOINT("checkpoint.begun");
}

void CheckpointStore::commit(const std::string& id, Manifest manifest, int ranks,
                             const BetweenBlocks& between_blocks) {
  const std::int64_t step = manifest.progress.step;
  const std::string staging = staging_folder(step, id);
  try {
    manifest.files = read_reports(staging, ranks, between_blocks);
    const Hash hash = write_manifest(disk_, staging, std::move(manifest), between_blocks);
    put_in_place(step, id, hash, between_blocks);
  } catch (...) {
    abandon(step, id);
    throw;
  }
  under_way_.erase(staging);
  last_ = step;
  settle(step, id);
}

// The rename that gives the folder its name is all that makes it a checkpoint: a writer that was given up,
// and does not know it yet, may do the same for the same step at the same time. Whatever stands there is
// moved away, and not removed there, for the same reason.
void CheckpointStore::put_in_place(std::int64_t step, const std::string& id, const Hash& manifest,
                                   const BetweenBlocks& between_blocks) {
  const std::string staging = staging_folder(step, id);
  const std::string place = path_of({step, Kind::plain, {}});
  const std::string old = path_of({step, Kind::old, id});
  between_blocks();
  write_synced(disk_, fmt::format("{}/{}", staging, kCommitFile), commit_text(manifest));
  LOCKSTEP_FAILPOINT("checkpoint.commit.written");
  between_blocks();
  disk_.sync_folder(staging);
  bool has_moved = false;
  bool is_placed = false;
  try {
    if (exists(place)) {
      disk_.rename(place, old);
      has_moved = true;
      LOCKSTEP_FAILPOINT("checkpoint.replace.moved");
    }
    between_blocks();
    disk_.sync_folder(folder_);
    between_blocks();
    disk_.rename(staging, place);
    is_placed = true;
    LOCKSTEP_FAILPOINT("checkpoint.folder.renamed");
    disk_.sync_folder(folder_);
  } catch (...) {
    // Whatever of this fails too, the one that was there before is still listed.
    attempt([&] {
      if (is_placed && read_commit(place) == manifest) remove_checkpoint(place);
      if (has_moved) disk_.rename(old, place);
      disk_.sync_folder(folder_);
    });
    throw;
  }
}

// What is left to do when a checkpoint is committed, and does not change that it is.
void CheckpointStore::settle(std::int64_t step, const std::string& id) noexcept {
  attempt([&] {
    LOCKSTEP_FAILPOINT("checkpoint.committed");
    const std::string old = path_of({step, Kind::old, id});
    if (exists(old)) remove_checkpoint(old);
  });
  attempt([&] {
    const std::vector<Listed> all = committed();
    if (all.empty()) throw UsageError(fmt::format("no checkpoint in {} can be read", folder_));
    const std::string newest = std::filesystem::path(all.front().path).filename().string();
    replace_file(disk_, fmt::format("{}/{}", folder_, kLatestFile), newest + "\n");
    LOCKSTEP_FAILPOINT("checkpoint.latest.replaced");
  });
}

void CheckpointStore::abandon(std::int64_t step, const std::string& id) noexcept {
  attempt([&] {
    under_way_.erase(staging_folder(step, id));
    if (exists(staging_folder(step, id))) disk_.remove_all(staging_folder(step, id));
  });
}

// COMMIT first, so that no crash leaves a part of it with one; the sync also when it was gone already,
// because that may not be on the disk yet.
void CheckpointStore::remove_checkpoint(const std::string& path) {
  disk_.remove_all(fmt::format("{}/{}", path, kCommitFile));
  disk_.sync_folder(path);
  LOCKSTEP_FAILPOINT("checkpoint.collect.uncommitted");
  disk_.remove_all(path);
}

}  // namespace lockstep::checkpoint
