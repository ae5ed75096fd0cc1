// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "lockstep/transport/memory/words.h"

namespace lockstep::transport {
namespace {

// A few lines are cheaper to take back than to send to memory.
constexpr std::size_t kMostCachedBytes = 512;

}  // namespace

#if defined(__SSE2__)
bool streaming_pays() {
  static const bool pays = __builtin_cpu_is("intel") == 0;
  return pays;
}

void copy_streaming(std::byte* into, ConstBytes bytes) {
  const auto misaligned = reinterpret_cast<std::uintptr_t>(into) % kCacheLine;
  const std::size_t head = misaligned == 0 ? 0 : std::min(bytes.size(), kCacheLine - misaligned);
  std::memcpy(into, bytes.data(), head);
  const std::byte* from = bytes.data() + head;
  std::byte* to = into + head;
  const std::byte* const last_line = from + (bytes.size() - head) / kCacheLine * kCacheLine;
  for (; from != last_line; from += kCacheLine, to += kCacheLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
  }
  std::memcpy(to, from, static_cast<std::size_t>(bytes.data() + bytes.size() - from));
  // Streaming stores are not ordered by a release store.
  _mm_sfence();
}
#else
bool streaming_pays() {
  return false;
}

void copy_streaming(std::byte* into, ConstBytes bytes) {
  std::memcpy(into, bytes.data(), bytes.size());
}
#endif

void copy_for_peer(std::byte* into, ConstBytes bytes) {
  if (bytes.size() > kMostCachedBytes && streaming_pays()) return copy_streaming(into, bytes);
  std::memcpy(into, bytes.data(), bytes.size());
}

}  // namespace lockstep::transport
