// SPDX-License-Identifier: Apache-2.0
//
// A reader of TensorBoard's files that shares nothing with the writer but the checksum, which has tests of
// its own.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/metrics/crc32c.h"

namespace lockstep::test {

// Takes numbers and texts from the begin of some bytes.
class EventReader {
 public:
  explicit EventReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw std::runtime_error("truncated");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::uint64_t fixed(std::size_t count) {
    std::uint64_t value = 0;
    int shift = 0;
    for (const char c : take(count)) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << shift;
      shift += 8;
    }
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint64_t byte = fixed(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view delimited() { return take(varint()); }

 private:
  std::string_view bytes_;
};

struct Event {
  double time_s = 0.0;
  std::int64_t step = 0;
  std::string version;
  std::map<std::string, float> values;
};

inline void read_event_value(std::string_view bytes, Event& event) {
  EventReader reader(bytes);
  ASSERT_EQ(reader.varint(), 0x0au);
  const std::string tag(reader.delimited());
  ASSERT_EQ(reader.varint(), 0x15u);
  event.values[tag] = std::bit_cast<float>(static_cast<std::uint32_t>(reader.fixed(4)));
  ASSERT_TRUE(reader.at_end());
}

inline Event read_event(std::string_view bytes) {
  Event event;
  for (EventReader reader(bytes); !reader.at_end();) {
    switch (reader.varint()) {
      case 0x09:
        event.time_s = std::bit_cast<double>(reader.fixed(8));
        break;
      case 0x10:
        event.step = static_cast<std::int64_t>(reader.varint());
        break;
      case 0x1a:
        event.version = reader.delimited();
        break;
      case 0x2a:
        for (EventReader summary(reader.delimited()); !summary.at_end();) {
          EXPECT_EQ(summary.varint(), 0x0au);
          read_event_value(summary.delimited(), event);
        }
        break;
      default:
        throw std::runtime_error("unknown field");
    }
  }
  return event;
}

// Expects that all checksums are right.
inline std::vector<Event> read_events(std::string_view bytes) {
  std::vector<Event> events;
  for (EventReader reader(bytes); !reader.at_end();) {
    const std::string_view length = reader.take(8);
    EXPECT_EQ(reader.fixed(4), metrics::masked_crc32c(length));
    const std::string_view data = reader.take(EventReader(length).fixed(8));
    EXPECT_EQ(reader.fixed(4), metrics::masked_crc32c(data));
    events.push_back(read_event(data));
  }
  return events;
}

}  // namespace lockstep::test
