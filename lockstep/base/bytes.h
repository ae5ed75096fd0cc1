// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
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

// Empty spans overlap nothing.
inline bool overlap(ConstBytes a, ConstBytes b) {
  const std::less<const std::byte*> before;  // a total order, also over unrelated objects
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) &&
         before(b.data(), a.data() + a.size());
}

}  // namespace lockstep
