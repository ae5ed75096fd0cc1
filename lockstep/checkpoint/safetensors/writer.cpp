// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/output_file.h"
#include "lockstep/checkpoint/safetensors/file.h"
#include "lockstep/checkpoint/safetensors/types.h"

namespace lockstep::checkpoint {
namespace {

std::ptrdiff_t place_of(DType dtype) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const SafetensorsType& type) { return type.dtype == dtype; });
  return found - kTypes.begin();
}

void write_to(OutputFile& file, const std::vector<OutgoingTensor>& tensors, const Metadata& metadata) {
  std::vector<HeaderEntry> entries;
  for (const OutgoingTensor& tensor : tensors) entries.push_back(tensor.entry());
  file.write(header_text(entries, metadata));
  std::vector<std::byte> bytes;
  for (const OutgoingTensor& tensor : tensors) {
    bytes.resize(tensor.bytes());
    tensor.fill(bytes);
    file.write(bytes);
  }
}

}  // namespace

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
