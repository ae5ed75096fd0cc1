// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/shard_writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/base/input_file.h"
#include "lockstep/checkpoint/safetensors/header_text.h"

namespace lockstep::checkpoint {
namespace {

// A piece may share its tensor with others of the file, but not its first element.
std::string name_in_file(const OutgoingPiece& piece) {
  return fmt::format("{}@{}", piece.tensor, piece.elements.first);
}

std::string header_of(const std::vector<OutgoingPiece>& pieces) {
  std::vector<HeaderEntry> entries;
  for (const OutgoingPiece& piece : pieces) {
    if (piece.elements.size() == 0) continue;
    entries.push_back({name_in_file(piece), DType::fp32, {static_cast<std::int64_t>(piece.elements.size())}});
  }
  return header_text(entries, {{"format", "pt"}});
}

class Shard {
 public:
  // What is referred to must outlive this.
  Shard(Disk& disk, const std::string& path, const BetweenBlocks& between_blocks)
      : file_(disk.create(path)), between_blocks_(between_blocks) {}

  void write(ConstBytes bytes) {
    hasher_.add(bytes);
    file_->write(bytes);
    bytes_ += bytes.size();
  }
  Piece write(const OutgoingPiece& piece) {
    const ConstBytes bytes = std::as_bytes(piece.values());
    LOCKSTEP_CHECK(bytes.size() == sizeof(float) * piece.elements.size(),
                   fmt::format("{} bytes for a piece of {} with {} elements", bytes.size(), piece.tensor,
                               piece.elements.size()));
    Hasher hasher;
    // Block by block, so that memory is read once for both hashes and the copy of the kernel.
    for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
      const ConstBytes block = bytes.subspan(at, std::min(kBlockBytes, bytes.size() - at));
      between_blocks_();
      hasher.add(block);
      write(block);
      LOCKSTEP_FAILPOINT("checkpoint.shard.block");
    }
    return {.tensor = piece.tensor,
            .in_file = name_in_file(piece),
            .elements = piece.elements,
            .hash = hasher.value()};
  }
  void finish(ShardFile& description) {
    LOCKSTEP_FAILPOINT("checkpoint.shard.before_sync");
    between_blocks_();
    file_->sync();
    LOCKSTEP_FAILPOINT("checkpoint.shard.after_sync");
    description.bytes = bytes_;
    description.hash = hasher_.value();
  }

 private:
  std::unique_ptr<Disk::File> file_;
  const BetweenBlocks& between_blocks_;
  Hasher hasher_;
  std::uint64_t bytes_ = 0;
};

ShardFile write_file(Shard shard, std::string name, const std::vector<OutgoingPiece>& pieces) {
  ShardFile description = {.name = std::move(name), .bytes = 0, .hash = {}, .pieces = {}};
  LOCKSTEP_FAILPOINT("checkpoint.shard.begun");
  const std::string header = header_of(pieces);
  shard.write(std::as_bytes(std::span(header)));
  for (const OutgoingPiece& piece : pieces) {
    if (piece.elements.size() > 0) description.pieces.push_back(shard.write(piece));
  }
  shard.finish(description);
  return description;
}

void compare(const std::string& path, const ShardFile& written, const BetweenBlocks& between_blocks) {
  const InputFile file(path);
  Hasher hasher;
  each_block(file, 0, file.size(), [&](ConstBytes block) {
    between_blocks();
    hasher.add(block);
  });
  if (file.size() == written.bytes && hasher.value() == written.hash) return;
  throw DataError(
      fmt::format("{} is not what was written a moment ago ({} bytes with hash {}, but {} with {} were "
                  "written): the disk "
                  "or the memory of this host is broken",
                  path, file.size(), to_text(hasher.value()), written.bytes, to_text(written.hash)));
}

}  // namespace

std::string shard_name(int rank) {
  return fmt::format("rank-{}.safetensors", rank);
}

std::string report_name(int rank) {
  return fmt::format("rank-{}.json", rank);
}

ShardFile write_shard(Disk& disk, const std::string& folder, int rank,
                      const std::vector<OutgoingPiece>& pieces, const BetweenBlocks& between_blocks) {
  const std::string path = folder + "/" + shard_name(rank);
  ShardFile description = write_file({disk, path, between_blocks}, shard_name(rank), pieces);
  compare(path, description, between_blocks);
  LOCKSTEP_FAILPOINT("checkpoint.shard.verified");
  between_blocks();
  write_synced(disk, folder + "/" + report_name(rank), to_json(description));
  disk.sync_folder(folder);
  LOCKSTEP_FAILPOINT("checkpoint.report.written");
  return description;
}

}  // namespace lockstep::checkpoint
