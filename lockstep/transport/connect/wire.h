// SPDX-License-Identifier: Apache-2.0
//
// Integers as they stand on the wire: little-endian, unaligned.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "lockstep/base/bytes.h"
#include "lockstep/base/error.h"

namespace lockstep::transport {

// Writes fields one after another into memory of a known size. Overrunning it is a bug of ours.
class WireWriter {
 public:
  explicit WireWriter(Bytes out) : out_(out) {}

  template <std::unsigned_integral T>
  void put(T value) {
    Bytes field = next(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      field[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
  }

  void put(ConstBytes bytes) {
    Bytes field = next(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) field[i] = bytes[i];
  }

  std::size_t written() const { return at_; }

 private:
  Bytes next(std::size_t bytes) {
    LOCKSTEP_CHECK(bytes <= out_.size() - at_);
    at_ += bytes;
    return out_.subspan(at_ - bytes, bytes);
  }

  Bytes out_;
  std::size_t at_ = 0;
};

// The other direction; the caller has checked that the memory holds all fields.
class WireReader {
 public:
  explicit WireReader(ConstBytes in) : in_(in) {}

  template <std::unsigned_integral T>
  T get() {
    const ConstBytes field = get_bytes(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(field[i]) << (8 * i);
    return static_cast<T>(value);
  }

  ConstBytes get_bytes(std::size_t bytes) {
    LOCKSTEP_CHECK(bytes <= in_.size() - at_);
    at_ += bytes;
    return in_.subspan(at_ - bytes, bytes);
  }

 private:
  ConstBytes in_;
  std::size_t at_ = 0;
};

}  // namespace lockstep::transport
