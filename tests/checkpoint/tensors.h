// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/safetensors/file.h"

namespace lockstep::checkpoint::testing {

// A tensor whose bytes are `content`.
inline OutgoingTensor tensor_of(std::string name, DType dtype, std::vector<std::int64_t> shape,
                                std::string content) {
  return {std::move(name), dtype, std::move(shape), [content = std::move(content)](Bytes bytes) {
            ASSERT_EQ(bytes.size(), content.size());
            std::ranges::copy(std::as_bytes(std::span(content)), bytes.begin());
          }};
}

inline std::string text_of(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file with this header and data, whatever they say.
inline std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return text_of(as_bytes_of(length)) + header + data;
}

}  // namespace lockstep::checkpoint::testing
