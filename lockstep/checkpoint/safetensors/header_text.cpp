// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/safetensors/header_text.h"

#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/bytes.h"
#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kAlignment = 8;

// Written member by member, because an object of the library looks for each new name among all before it.
void append(std::string& text, const std::string& name, const nlohmann::ordered_json& value) {
  text += text.size() > 1 ? "," : "";
  text += nlohmann::json(name).dump() + ":" + value.dump();
}

}  // namespace

std::uint64_t HeaderEntry::bytes() const {
  std::uint64_t bytes = size_of(dtype);
  for (const std::int64_t size : shape) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

std::string header_text(std::span<const HeaderEntry> tensors, const Metadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) append(json, "__metadata__", metadata);
  std::set<std::string_view> names;
  std::uint64_t at = 0;
  for (const HeaderEntry& tensor : tensors) {
    LOCKSTEP_CHECK(names.insert(tensor.name).second, fmt::format("tensor {} is written twice", tensor.name));
    const std::uint64_t end = at + tensor.bytes();
    append(json, tensor.name,
           {{"dtype", type_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {at, end}}});
    at = end;
  }
  json += "}";
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t length = json.size();
  LOCKSTEP_CHECK(length <= kMaxHeaderBytes);
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + json;
}

}  // namespace lockstep::checkpoint
