// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/safetensors/header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/safetensors/header_json.h"
#include "lockstep/checkpoint/safetensors/types.h"
#include "lockstep/data/corpus/bad_file.h"

namespace lockstep::checkpoint {
namespace {

using data::bad_file;

constexpr std::uint64_t kLengthBytes = 8;

const SafetensorsType* find_type(std::string_view name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const SafetensorsType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

// None when it does not fit in 63 bits.
std::optional<std::uint64_t> bytes_of(const DeclaredTensor& tensor, std::uint64_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  for (const std::uint64_t size : tensor.shape) {
    if (size > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return std::nullopt;
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

// Offsets from the begin of the file. `data_begin` is where its data begins.
StoredTensor checked(const std::string& file, const std::string& name, const DeclaredTensor& declared,
                     std::uint64_t data_begin, std::uint64_t file_bytes) {
  const auto refuse = [&](const std::string& why) {
    bad_file(file, kLengthBytes, fmt::format("tensor '{}' {}", name, why));
  };
  const SafetensorsType* type = find_type(declared.type);
  if (type == nullptr) refuse(fmt::format("has the unknown dtype '{}'", declared.type));
  if (declared.data_offsets.size() != 2) refuse("has not two data_offsets");
  const std::uint64_t begin = declared.data_offsets[0];
  const std::uint64_t end = declared.data_offsets[1];
  if (begin > end || end > file_bytes - data_begin) {
    refuse(fmt::format("has data_offsets {} and {}, but the file has {} bytes of data", begin, end,
                       file_bytes - data_begin));
  }
  const std::optional<std::uint64_t> bytes = bytes_of(declared, type->bytes);
  if (!bytes || *bytes != end - begin) {
    refuse(fmt::format("has {} bytes of data, which is not what its dtype and shape take", end - begin));
  }
  return {.type = declared.type,
          .shape = {declared.shape.begin(), declared.shape.end()},
          .begin = data_begin + begin,
          .end = data_begin + end};
}

// Every byte of the data belongs to one tensor.
void check_contiguous(const SafetensorsHeader& header, const std::string& file, std::uint64_t data_begin,
                      std::uint64_t file_bytes) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const auto& [name, tensor] : header.tensors) parts.emplace_back(tensor.begin, tensor.end);
  std::sort(parts.begin(), parts.end());
  std::uint64_t at = data_begin;
  for (const auto& [begin, end] : parts) {
    if (begin != at) {
      bad_file(file, std::min(begin, at),
               begin > at ? fmt::format("{} bytes belong to no tensor", begin - at) : "two tensors overlap");
    }
    at = end;
  }
  if (at != file_bytes) bad_file(file, at, fmt::format("{} bytes follow the last tensor", file_bytes - at));
}

}  // namespace

SafetensorsHeader parse_safetensors(ConstBytes file, const std::string& name) {
  const std::uint64_t data_begin = safetensors_data_begin(file, file.size(), name);
  return parse_safetensors_header(file.first(data_begin), file.size(), name);
}

std::uint64_t safetensors_data_begin(ConstBytes first, std::uint64_t file_bytes, const std::string& name) {
  if (first.size() < kLengthBytes) bad_file(name, first.size(), "the file ends within its first 8 bytes");
  std::uint64_t length = 0;
  std::memcpy(&length, first.data(), kLengthBytes);
  if (length > kMaxHeaderBytes) {
    bad_file(name, 0,
             fmt::format("a header of {} bytes, of at most {}: this is no safetensors file", length,
                         kMaxHeaderBytes));
  }
  if (length > file_bytes - kLengthBytes) {
    bad_file(name, file_bytes, fmt::format("the file ends here, within its header of {} bytes", length));
  }
  return kLengthBytes + length;
}

SafetensorsHeader parse_safetensors_header(ConstBytes before_data, std::uint64_t file_bytes,
                                           const std::string& name) {
  const ConstBytes json = before_data.subspan(kLengthBytes);
  const DeclaredHeader declared =
      read_header_json({reinterpret_cast<const char*>(json.data()), json.size()}, name);
  SafetensorsHeader header = {.tensors = {}, .metadata = declared.metadata};
  for (const auto& [tensor, entry] : declared.tensors) {
    header.tensors.emplace(tensor, checked(name, tensor, entry, before_data.size(), file_bytes));
  }
  check_contiguous(header, name, before_data.size(), file_bytes);
  return header;
}

std::optional<DType> dtype_of_type(std::string_view type) {
  const SafetensorsType* found = find_type(type);
  return found == nullptr ? std::nullopt : found->dtype;
}

std::string_view type_of(DType dtype) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const SafetensorsType& type) { return type.dtype == dtype; });
  LOCKSTEP_CHECK(found != kTypes.end(), "a dtype without a name in safetensors files");
  return found->name;
}

}  // namespace lockstep::checkpoint
