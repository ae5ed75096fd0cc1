// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "lockstep/base/bytes.h"

namespace lockstep::cli {

// Ordinary memory, aligned to pages and touched, so that no page fault is measured.
class PlainMemory {
 public:
  PlainMemory() = default;
  explicit PlainMemory(std::size_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded(bytes)))), bytes_(bytes) {
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, rounded(bytes));
  }

  Bytes bytes() const { return {data_.get(), bytes_}; }

 private:
  static constexpr std::size_t kPage = 4096;
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  static std::size_t rounded(std::size_t bytes) { return (bytes / kPage + 1) * kPage; }

  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::cli
