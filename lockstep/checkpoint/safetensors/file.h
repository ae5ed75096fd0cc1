// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"
#include "lockstep/base/mapped_file.h"
#include "lockstep/checkpoint/safetensors/header.h"
#include "lockstep/checkpoint/safetensors/header_text.h"

namespace lockstep::checkpoint {

// A safetensors file, read through memory.
class SafetensorsFile {
 public:
  // UsageError when it cannot be opened, DataError when it is corrupt.
  explicit SafetensorsFile(const std::string& path)
      : file_(path), header_(parse_safetensors(file_.bytes(), path)) {}

  const std::string& path() const { return file_.path(); }
  const SafetensorsHeader& header() const { return header_; }
  // Live as long as this object; `tensor` is one of the header's. Not aligned: other writers need not be so
  // careful. DataError when the file has become shorter since it was opened.
  ConstBytes bytes_of(const StoredTensor& tensor) const {
    file_.require_whole();
    return file_.bytes().subspan(tensor.begin, tensor.end - tensor.begin);
  }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

struct OutgoingTensor {
  std::string name;
  DType dtype = DType::fp32;
  std::vector<std::int64_t> shape;
  std::function<void(Bytes)> fill;  // writes all elements, row-major; called once

  HeaderEntry entry() const { return {name, dtype, shape}; }
  std::uint64_t bytes() const { return entry().bytes(); }
};

// Replaces `path` in one step: readers see the old file or the whole new one. Holds one tensor in memory at a
// time. UsageError when something cannot be written.
void write_safetensors(const std::string& path, std::vector<OutgoingTensor> tensors,
                       const Metadata& metadata);

}  // namespace lockstep::checkpoint
