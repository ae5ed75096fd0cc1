// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "lockstep/base/bytes.h"

namespace lockstep::transport {

// Owns a range of mapped memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Mapping();

  // Zero-filled private memory that costs nothing until it is touched. UsageError when there is no room for
  // it.
  static Mapping anonymous(std::size_t bytes);

  // A part of a file; both ends are multiples of the page size. UsageError naming the size when it cannot be
  // mapped.
  enum class Access {
    read,
    write,
    write_soon,  // and every page will be used: they are made present now, which is faster than one by one
  };
  static Mapping of_file(int fd, std::size_t offset, std::size_t bytes, Access access);

  // Gives back the pages of a file's mapping; what is touched again comes back, with the same contents.
  void forget() const;

  Bytes bytes() const { return memory_; }
  std::byte* data() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }

  // The memory as an object whose zero-filled representation is valid.
  template <typename T>
  T& as() const {
    return *reinterpret_cast<T*>(memory_.data());
  }

 private:
  explicit Mapping(Bytes memory) : memory_(memory) {}

  Bytes memory_;
};

}  // namespace lockstep::transport
