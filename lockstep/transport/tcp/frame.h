// SPDX-License-Identifier: Apache-2.0
//
// What travels on an authenticated connection: frames, each a header of 64 bytes and a payload of
// header.length bytes. Integers are little-endian.
//
//   0 magic u32 | 4 version u8 | 5 type u8 | 6 zero u16 | 8 generation u64 | 16 stream u32 | 20 length u32
//  24 sequence u64 | 32 contract u64 | 40 envelope sequence u64 | 48 total u64 | 56 offset u64
//
//   type       sequence   envelope  total            offset         payload
//   bind       link       0         links            world          -
//   eager      message    yes       = length         0              the message
//   data       message    yes       message bytes    of segment     one segment
//   offer      message    yes       message bytes    0              -
//   credit     message    yes       message bytes    granted up to  -
//   give_back  0          0         eager bytes taken so far, 0     -
//   disagree   message    mine      my bytes         0              your envelope and bytes
//   notice     index      0         0                0              the head
//   failure    0          0         0                0              the text
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/channel.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::transport::tcp {

enum class FrameType : std::uint8_t {
  bind = 1,
  eager = 2,
  data = 3,
  offer = 4,
  credit = 5,
  give_back = 6,
  disagree = 7,
  notice = 8,
  failure = 9,
};

struct FrameHeader {
  FrameType type = FrameType::bind;
  StreamId stream = 0;
  std::uint32_t length = 0;
  std::uint64_t sequence = 0;
  Envelope envelope = {};
  std::uint64_t total = 0;
  std::uint64_t offset = 0;

  bool operator==(const FrameHeader&) const = default;
};

inline constexpr std::size_t kHeaderBytes = 64;
using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes encode(const FrameHeader& header, std::uint64_t generation);

// DataError naming the field, what was expected and what was found, when any field is not what its type
// allows.
FrameHeader decode(std::span<const std::byte, kHeaderBytes> bytes, std::uint64_t generation);

// A small frame that owns its payload.
struct ControlFrame {
  FrameHeader header;
  std::vector<std::byte> payload;
};

// Tells the other side of a message that we disagree about it.
ControlFrame make_disagree(StreamId stream, std::uint64_t sequence, const EnvelopeMismatch& mismatch);

// The same, as the receiver of that frame sees it: mine and theirs have changed places.
EnvelopeMismatch read_disagree(const FrameHeader& header, ConstBytes payload);
inline constexpr std::size_t kDisagreeBytes = 24;

}  // namespace lockstep::transport::tcp
