// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace lockstep {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// The bytes of a trivially copyable object or of a contiguous range; the view must not outlive it.
template <typename T>
requires std::is_trivially_copyable_v<T> ConstBytes as_bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <typename T>
requires std::is_trivially_copyable_v<T> Bytes as_writable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace lockstep
