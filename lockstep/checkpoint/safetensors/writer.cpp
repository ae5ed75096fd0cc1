// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/checkpoint/safetensors/file.h"
#include "lockstep/checkpoint/safetensors/types.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kAlignment = 8;

std::ptrdiff_t place_of(DType dtype) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const SafetensorsType& type) { return type.dtype == dtype; });
  return found - kTypes.begin();
}

std::string header_of(const std::vector<OutgoingTensor>& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const OutgoingTensor& tensor : tensors) {
    LOCKSTEP_CHECK(!header.contains(tensor.name), fmt::format("tensor {} is written twice", tensor.name));
    const std::uint64_t end = at + tensor.bytes();
    header[tensor.name] = {
        {"dtype", type_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  LOCKSTEP_CHECK(text.size() <= kMaxHeaderBytes);
  return text;
}

void write_to(OutputFile& file, const std::vector<OutgoingTensor>& tensors, const Metadata& metadata) {
  const std::string header = header_of(tensors, metadata);
  const std::uint64_t length = header.size();
  file.write(as_bytes_of(length));
  file.write(header);
  std::vector<std::byte> bytes;
  for (const OutgoingTensor& tensor : tensors) {
    bytes.resize(tensor.bytes());
    tensor.fill(bytes);
    file.write(bytes);
  }
}

}  // namespace

std::uint64_t OutgoingTensor::bytes() const {
  std::uint64_t bytes = size_of(dtype);
  for (const std::int64_t size : shape) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

void write_safetensors(const std::string& path, std::vector<OutgoingTensor> tensors,
                       const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const OutgoingTensor& a, const OutgoingTensor& b) {
    const std::ptrdiff_t at = place_of(a.dtype);
    const std::ptrdiff_t other = place_of(b.dtype);
    return std::tie(at, a.name) < std::tie(other, b.name);
  });
  const std::string temporary = fmt::format("{}.partial-{}", path, ::getpid());
  try {
    OutputFile file(temporary);
    write_to(file, tensors, metadata);
    file.rename_to(path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace lockstep::checkpoint
