// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/message_bytes.h"

#include <span>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {

MessageWriter& MessageWriter::append(ConstBytes bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

MessageWriter& MessageWriter::text(std::string_view value) {
  LOCKSTEP_CHECK(value.size() <= UINT16_MAX);
  number(static_cast<std::uint16_t>(value.size()));
  return append(std::as_bytes(std::span(value)));
}

std::vector<std::byte> MessageWriter::framed(const MessageHeader& header) const {
  MessageWriter frame;
  frame.number(header.magic).number(header.version).number(header.type).number(std::uint8_t{0});
  frame.number(static_cast<std::uint32_t>(bytes_.size())).append(bytes_);
  return std::move(frame.bytes_);
}

std::string MessageReader::text(std::size_t most) {
  const auto length = number<std::uint16_t>();
  if (length > most) fail(fmt::format("a text of {} bytes, at most {} are allowed", length, most));
  const ConstBytes bytes = take(length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string MessageReader::printable(std::size_t most) {
  std::string read = text(most);
  for (char c : read) {
    if (c < 0x20 || c > 0x7e) fail("a text with unprintable bytes");
  }
  return read;
}

void MessageReader::end() const {
  if (at_ != bytes_.size()) fail(fmt::format("{} bytes left over", bytes_.size() - at_));
}

void MessageReader::fail(const std::string& why) const {
  throw DataError(fmt::format("{} at byte {}: {}", what_, at_, why));
}

ConstBytes MessageReader::take(std::size_t count) {
  if (count > bytes_.size() - at_) {
    fail(fmt::format("{} bytes expected, {} left", count, bytes_.size() - at_));
  }
  at_ += count;
  return bytes_.subspan(at_ - count, count);
}

}  // namespace lockstep::transport
