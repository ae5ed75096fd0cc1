// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/copy.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "lockstep/transport/memory/words.h"

namespace lockstep::transport {
namespace {

constexpr std::size_t kAlwaysCached = 512;
constexpr std::size_t kAlwaysStreamed = 12 * 1024;
constexpr std::uint32_t kTimedEvery = 32;

// Between what was measured for near and for far cores, with room for the cost of timing.
constexpr std::chrono::nanoseconds kFarBase{100};
constexpr std::chrono::nanoseconds kFarPerLine{12};

}  // namespace

#if defined(__SSE2__)
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
void copy_streaming(std::byte* into, ConstBytes bytes) {
  std::memcpy(into, bytes.data(), bytes.size());
}
#endif

void PeerCopy::run(std::byte* into, ConstBytes bytes) {
  const std::size_t size = bytes.size();
  if (size <= kAlwaysCached) {
    std::memcpy(into, bytes.data(), size);
    return;
  }
  if (size >= kAlwaysStreamed) return copy_streaming(into, bytes);
  if (until_timed_-- == 0) {
    until_timed_ = kTimedEvery;
    timed_lines_ = size / kCacheLine;
    started_ = Clock::now();
  } else if (far_) {
    return copy_streaming(into, bytes);
  }
  std::memcpy(into, bytes.data(), size);
}

void PeerCopy::judge() {
  const auto lines = static_cast<std::int64_t>(std::exchange(timed_lines_, 0));
  far_ = Clock::now() - started_ > kFarBase + lines * kFarPerLine;
}

}  // namespace lockstep::transport
