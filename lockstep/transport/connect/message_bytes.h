// SPDX-License-Identifier: Apache-2.0
//
// Messages of the small protocols that run over authenticated connections. Each is a header of
// kMessageHeaderBytes (magic, protocol version, type, a zero, length of what follows) and a body; integers
// are little-endian, texts have a 16-bit length before them.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/connect/wire.h"

namespace lockstep::transport {

inline constexpr std::size_t kMessageHeaderBytes = 12;

struct MessageHeader {
  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint8_t type = 0;
};

// Writes a body of any length.
class MessageWriter {
 public:
  template <std::unsigned_integral T>
  MessageWriter& number(T value) {
    std::array<std::byte, sizeof(T)> bytes;
    WireWriter(bytes).put(value);
    return append(bytes);
  }
  MessageWriter& text(std::string_view value);  // shorter than 2^16 bytes

  // The header and what was written.
  std::vector<std::byte> framed(const MessageHeader& header) const;
  const std::vector<std::byte>& body() const { return bytes_; }

 private:
  MessageWriter& append(ConstBytes bytes);

  std::vector<std::byte> bytes_;
};

// Reads a header or body that is not trusted: whatever does not fit is a DataError that names `what` and
// where.
class MessageReader {
 public:
  // Both must outlive this.
  MessageReader(ConstBytes bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  template <std::unsigned_integral T>
  T number() {
    return WireReader(take(sizeof(T))).get<T>();
  }
  std::string text(std::size_t most);
  // A text that will be shown to people or used as a name.
  std::string printable(std::size_t most);

  void end() const;  // everything was read
  [[noreturn]] void fail(const std::string& why) const;

 private:
  ConstBytes take(std::size_t count);

  ConstBytes bytes_;
  std::string_view what_;
  std::size_t at_ = 0;
};

}  // namespace lockstep::transport
