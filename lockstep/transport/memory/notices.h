// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/memory/words.h"

namespace lockstep::transport {

// What one rank says about one stream, in memory that its peers read. A slot's number is 0 while it is being
// written; a reader that sees the same number before and after has read one notice, whole. Valid when
// zero-filled.
struct StreamNotices {
  struct alignas(kCacheLine) Slot {
    Word number;  // 1 + index of the notice
    Word head[kNoticeHeadBytes / sizeof(Word)];
  };

  alignas(kCacheLine) Word published;
  Word failure_bytes;  // 1 + length of the text, once it is complete
  Word failure_text[kMaxFailureText / sizeof(Word)];
  Slot slots[kNoticeHistory];
};
static_assert(kNoticeHeadBytes % sizeof(Word) == 0 && kMaxFailureText % sizeof(Word) == 0);

// By the rank that owns the board.
void publish_notice(StreamNotices& board, std::uint64_t index, const NoticeHead& head);
// Only the first failure counts; false if there was one before.
bool publish_failure(StreamNotices& board, std::string_view why);

// By its peers. A length that cannot be is DataError.
std::uint64_t notices_on(const StreamNotices& board);
std::optional<NoticeHead> read_notice(const StreamNotices& board, std::uint64_t index);
std::optional<std::string> read_failure(const StreamNotices& board);

// What peers see of a rank apart from its channels.
struct ControlBlock {
  alignas(kCacheLine) Word sleeping;  // see bell.h
  alignas(kCacheLine) Word failures;  // streams that have failed so far
  StreamNotices streams[kMaxStreams];
};

}  // namespace lockstep::transport
