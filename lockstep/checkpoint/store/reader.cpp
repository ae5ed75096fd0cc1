// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/safetensors/header.h"
#include "lockstep/checkpoint/store/commit_file.h"

namespace lockstep::checkpoint {
namespace {

Hash committed_hash(const std::string& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw UsageError(fmt::format("there is no checkpoint {}: it is no folder", folder));
  }
  const std::optional<Hash> committed = read_commit(folder);
  if (!committed) {
    throw DataError(fmt::format("{} was never committed: it has no whole file {}", folder, kCommitFile));
  }
  return *committed;
}

Manifest read_manifest(const std::string& folder, const Hash& committed) {
  const std::string path = fmt::format("{}/{}", folder, kManifestFile);
  const std::string text = read_text(path, kMaxManifestBytes);
  const Hash found = hash_of(std::as_bytes(std::span(text)));
  if (found != committed) {
    throw DataError(fmt::format("{} is not what was committed: its hash is {}, but {} has {}", path,
                                to_text(found), kCommitFile, to_text(committed)));
  }
  return parse_manifest(text, path);
}

SafetensorsHeader read_header(const InputFile& file) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(file.size(), sizeof(std::uint64_t)));
  file.read(0, bytes);
  bytes.resize(safetensors_data_begin(bytes, file.size(), file.path()));
  file.read(0, bytes);
  return parse_safetensors_header(bytes, file.size(), file.path());
}

// The numbers that elements of the tensor have among those of the runs, from the first to one behind the
// last.
Range numbers_of(const Runs& runs, Range elements) {
  Range numbers;
  each_overlap(runs, elements, [&](std::size_t number, std::size_t, std::size_t count) {
    if (numbers.empty()) numbers.begin = number;
    numbers.end = number + count;
  });
  return numbers;
}

// `part` has the elements of the runs with these numbers.
void copy_wanted(const Runs& runs, Range numbers, const std::byte* part, Range wanted,
                 std::span<float> values) {
  each_numbered(runs, numbers, [&](std::size_t number, std::size_t element, std::size_t count) {
    const Range both = intersection({element, element + count}, wanted);
    if (both.empty()) return;
    const std::size_t skipped = number - numbers.begin + (both.begin - element);
    std::memcpy(values.data() + (both.begin - wanted.begin), part + skipped * sizeof(float),
                both.size() * sizeof(float));
  });
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder)
    : path_(folder),
      manifest_hash_(committed_hash(folder)),
      manifest_(read_manifest(folder, manifest_hash_)) {
  files_.reserve(manifest_.files.size());  // sources point to them
  for (const LogicalTensor& tensor : manifest_.tensors) sources_[tensor.name];
  for (const ShardFile& shard : manifest_.files) {
    for (const Source& source : open_shard(shard)) sources_.at(source.piece->tensor).push_back(source);
  }
}

std::vector<Checkpoint::Source> Checkpoint::open_shard(const ShardFile& shard) {
  const InputFile& file = files_.emplace_back(path_ + "/" + shard.name);
  if (file.size() != shard.bytes) {
    throw DataError(fmt::format("{} at byte {}: the file ends here, but the manifest gives it {} bytes",
                                file.path(), file.size(), shard.bytes));
  }
  const SafetensorsHeader header = read_header(file);
  std::vector<Source> sources;
  for (const Piece& piece : shard.pieces) {
    const auto found = header.tensors.find(piece.in_file);
    if (found == header.tensors.end() || found->second.type != type_of(DType::fp32) ||
        found->second.end - found->second.begin != piece.elements.size() * sizeof(float)) {
      throw DataError(fmt::format("{} has no '{}' with {} values in fp32, which the manifest promises",
                                  file.path(), piece.in_file, piece.elements.size()));
    }
    sources.push_back({.piece = &piece, .file = &file, .offset = found->second.begin, .is_verified = false});
  }
  if (header.tensors.size() != shard.pieces.size()) {
    throw DataError(fmt::format("{} has {} tensors, but the manifest gives it {}", file.path(),
                                header.tensors.size(), shard.pieces.size()));
  }
  return sources;
}

bool Checkpoint::has(const std::string& tensor) const {
  return sources_.contains(tensor);
}

const LogicalTensor& Checkpoint::tensor(const std::string& name) const {
  const auto found =
      std::lower_bound(manifest_.tensors.begin(), manifest_.tensors.end(), name,
                       [](const LogicalTensor& tensor, const std::string& key) { return tensor.name < key; });
  LOCKSTEP_CHECK(found != manifest_.tensors.end() && found->name == name, path_ + " has no tensor " + name);
  return *found;
}

void Checkpoint::require_hash(const Source& source, const Hash& found) const {
  if (found == source.piece->hash) return;
  throw DataError(
      fmt::format("{} at byte {}: the values of tensor '{}' from element {} on are not what was written: "
                  "their hash is {}, "
                  "but the manifest has {}",
                  source.file->path(), source.offset, source.piece->tensor, source.piece->elements.first,
                  to_text(found), to_text(source.piece->hash)));
}

void Checkpoint::read(const std::string& tensor_name, Range elements, std::span<float> values) {
  LOCKSTEP_CHECK(elements.end <= tensor(tensor_name).elements() && values.size() == elements.size());
  for (Source& source : sources_.at(tensor_name)) read(source, elements, values);
}

void Checkpoint::read(Source& source, Range elements, std::span<float> values) const {
  const Runs& runs = source.piece->elements;
  Range numbers = numbers_of(runs, elements);
  if (numbers.empty()) return;
  if (!source.is_verified) numbers = {0, runs.size()};
  Hasher hasher;
  each_block(*source.file, source.offset + numbers.begin * sizeof(float), numbers.size() * sizeof(float),
             [&](ConstBytes block) {
               const Range part = {numbers.begin, numbers.begin + block.size() / sizeof(float)};
               copy_wanted(runs, part, block.data(), elements, values);
               if (!source.is_verified) hasher.add(block);
               numbers.begin = part.end;
             });
  if (!source.is_verified) require_hash(source, hasher.value());
  source.is_verified = true;
}

void Checkpoint::verify(const BetweenBlocks& between_blocks) {
  std::map<const InputFile*, std::vector<Source*>> by_file;
  for (auto& [name, sources] : sources_) {
    for (Source& source : sources) by_file[source.file].push_back(&source);
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    verify(by_file[&files_[i]], manifest_.files[i], between_blocks);
  }
}

void Checkpoint::verify(std::vector<Source*> sources, const ShardFile& shard,
                        const BetweenBlocks& between_blocks) const {
  const InputFile& file = files_[static_cast<std::size_t>(&shard - manifest_.files.data())];
  std::sort(sources.begin(), sources.end(),
            [](const Source* a, const Source* b) { return a->offset < b->offset; });
  Hasher whole;
  const std::uint64_t data_begin = sources.empty() ? file.size() : sources.front()->offset;
  each_block(file, 0, data_begin, [&](ConstBytes block) { whole.add(block); });
  for (Source* source : sources) {
    Hasher hasher;
    each_block(file, source->offset, source->piece->elements.size() * sizeof(float), [&](ConstBytes block) {
      between_blocks();
      hasher.add(block);
      whole.add(block);
    });
    require_hash(*source, hasher.value());
    source->is_verified = true;
  }
  if (whole.value() == shard.hash) return;
  throw DataError(
      fmt::format("{}: its header is not what was written: the file has the hash {}, but the "
                  "manifest has {}",
                  file.path(), to_text(whole.value()), to_text(shard.hash)));
}

}  // namespace lockstep::checkpoint
