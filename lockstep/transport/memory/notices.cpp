// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/notices.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

constexpr std::size_t kFailureWords = kMaxFailureText / sizeof(Word);

}  // namespace

void publish_notice(StreamNotices& board, std::uint64_t index, const NoticeHead& head) {
  StreamNotices::Slot& slot = board.slots[index % kNoticeHistory];
  std::array<std::uint64_t, kNoticeHeadBytes / sizeof(Word)> words;
  std::memcpy(words.data(), head.data(), head.size());
  slot.number.store(0, std::memory_order_relaxed);
  // Release on every word: whoever reads one of these also sees that the number is gone.
  for (std::size_t i = 0; i < words.size(); ++i) slot.head[i].store(words[i], std::memory_order_release);
  slot.number.store(index + 1, std::memory_order_release);
  board.published.store(index + 1, std::memory_order_release);
}

bool publish_failure(StreamNotices& board, std::string_view why) {
  if (board.failure_bytes.load(std::memory_order_relaxed) != 0) return false;
  const std::string_view text = why.substr(0, kMaxFailureText);
  std::array<std::uint64_t, kFailureWords> words{};
  std::memcpy(words.data(), text.data(), text.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    board.failure_text[i].store(words[i], std::memory_order_relaxed);
  }
  board.failure_bytes.store(text.size() + 1, std::memory_order_release);
  return true;
}

std::uint64_t notices_on(const StreamNotices& board) {
  return board.published.load(std::memory_order_acquire);
}

std::optional<NoticeHead> read_notice(const StreamNotices& board, std::uint64_t index) {
  const StreamNotices::Slot& slot = board.slots[index % kNoticeHistory];
  if (slot.number.load(std::memory_order_acquire) != index + 1) return std::nullopt;
  std::array<std::uint64_t, kNoticeHeadBytes / sizeof(Word)> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = slot.head[i].load(std::memory_order_acquire);
  if (slot.number.load(std::memory_order_relaxed) != index + 1) return std::nullopt;
  NoticeHead head;
  std::memcpy(head.data(), words.data(), head.size());
  return head;
}

std::optional<std::string> read_failure(const StreamNotices& board) {
  const std::uint64_t bytes = board.failure_bytes.load(std::memory_order_acquire);
  if (bytes == 0) return std::nullopt;
  if (bytes - 1 > kMaxFailureText) {
    throw DataError(fmt::format("a peer's notice claims {} bytes of failure text, at most {} are possible",
                                bytes - 1, kMaxFailureText));
  }
  std::array<std::uint64_t, kFailureWords> words;
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = board.failure_text[i].load(std::memory_order_relaxed);
  return std::string(reinterpret_cast<const char*>(words.data()), bytes - 1);
}

}  // namespace lockstep::transport
