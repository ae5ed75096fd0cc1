// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/transport/endpoint.h"

namespace lockstep::transport::tcp {

// The notices of one rank, as far as they are known here.
class PeerNotices {
 public:
  void add(StreamId stream, std::uint64_t index, const NoticeHead& head) {
    OfStream& known = streams_[stream];
    known.count = std::max(known.count, index + 1);
    known.heads[index % kNoticeHistory] = {index, head};
  }
  // Only the first failure of a stream counts.
  void add_failure(StreamId stream, std::string why) {
    std::optional<std::string>& failure = streams_[stream].failure;
    if (!failure) failure = std::move(why);
  }

  std::uint64_t count(StreamId stream) const {
    const auto known = streams_.find(stream);
    return known == streams_.end() ? 0 : known->second.count;
  }
  std::optional<NoticeHead> head(StreamId stream, std::uint64_t index) const {
    const auto known = streams_.find(stream);
    if (known == streams_.end()) return std::nullopt;
    const auto& entry = known->second.heads[index % kNoticeHistory];
    const bool present = entry && entry->index == index && index + kNoticeHistory >= known->second.count;
    return present ? std::optional(entry->head) : std::nullopt;
  }
  std::optional<std::string> failure(StreamId stream) const {
    const auto known = streams_.find(stream);
    return known == streams_.end() ? std::nullopt : known->second.failure;
  }

 private:
  struct Entry {
    std::uint64_t index = 0;
    NoticeHead head;
  };
  struct OfStream {
    std::uint64_t count = 0;
    std::array<std::optional<Entry>, kNoticeHistory> heads;
    std::optional<std::string> failure;
  };

  std::map<StreamId, OfStream> streams_;
};

}  // namespace lockstep::transport::tcp
