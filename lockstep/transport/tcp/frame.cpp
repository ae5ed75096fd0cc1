// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/frame.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/transport/connect/wire.h"
#include "lockstep/transport/tcp/limits.h"

namespace lockstep::transport::tcp {
namespace {

constexpr std::uint32_t kMagic = 0x4d52464c;  // "LFRM"
constexpr std::uint8_t kVersion = 1;

void expect(bool holds, std::string_view field, std::uint64_t found, std::string_view expected) {
  if (!holds) throw DataError(fmt::format("bad frame: {} is {}, expected {}", field, found, expected));
}

void expect_value(std::string_view field, std::uint64_t found, std::uint64_t expected) {
  if (found != expected) {
    throw DataError(fmt::format("bad frame: {} is {:#x}, expected {:#x}", field, found, expected));
  }
}

void expect_no_envelope(const FrameHeader& header) {
  expect_value("contract", header.envelope.contract, 0);
  expect_value("envelope sequence", header.envelope.sequence, 0);
}

void expect_message_size(const FrameHeader& header) {
  expect(header.total >= 1 && header.total <= kMaxMessageBytes, "total", header.total, "1 to 2^48");
}

void check_bind(const FrameHeader& header) {
  expect_no_envelope(header);
  expect_value("stream", header.stream, 0);
  expect_value("length", header.length, 0);
  expect(header.total >= 1 && header.total <= kMaxLinksPerPeer, "number of links", header.total, "1 to 16");
  expect(header.sequence < header.total, "link", header.sequence, "less than the number of links");
  expect(header.offset >= 1 && header.offset <= kMaxWorld, "world", header.offset, "1 to 4096");
}

void check_eager(const FrameHeader& header) {
  expect(header.length >= 1 && header.length <= kEagerBytes, "length", header.length, "1 to 16384");
  expect_value("total", header.total, header.length);
  expect_value("offset", header.offset, 0);
}

void check_data(const FrameHeader& header) {
  expect_message_size(header);
  expect(header.offset < header.total && header.offset % kSegmentBytes == 0, "offset", header.offset,
         "the begin of a segment");
  expect_value("length", header.length, std::min<std::uint64_t>(kSegmentBytes, header.total - header.offset));
}

void check_offer(const FrameHeader& header) {
  expect_message_size(header);
  expect_value("length", header.length, 0);
  expect_value("offset", header.offset, 0);
}

void check_credit(const FrameHeader& header) {
  expect_message_size(header);
  expect_value("length", header.length, 0);
  expect(header.offset >= 1 && header.offset <= header.total, "granted bytes", header.offset,
         "1 to the size of the message");
  expect(header.offset == header.total || header.offset % kSegmentBytes == 0, "granted bytes", header.offset,
         "whole segments");
}

void check_give_back(const FrameHeader& header) {
  expect_no_envelope(header);
  expect_value("sequence", header.sequence, 0);
  expect_value("length", header.length, 0);
  expect_value("offset", header.offset, 0);
}

void check_disagree(const FrameHeader& header) {
  expect_message_size(header);
  expect_value("length", header.length, kDisagreeBytes);
  expect_value("offset", header.offset, 0);
}

void check_notice(const FrameHeader& header) {
  expect_no_envelope(header);
  expect_value("length", header.length, kNoticeHeadBytes);
  expect_value("total", header.total, 0);
  expect_value("offset", header.offset, 0);
  expect(header.sequence < ~std::uint64_t{0}, "sequence", header.sequence, "less than 2^64 - 1");
}

void check_failure(const FrameHeader& header) {
  expect_no_envelope(header);
  expect(header.length <= kMaxFailureText, "length", header.length, "at most 480");
  expect_value("sequence", header.sequence, 0);
  expect_value("total", header.total, 0);
  expect_value("offset", header.offset, 0);
}

void check(const FrameHeader& header) {
  expect(header.stream < kMaxStreams, "stream", header.stream, "less than 256");
  switch (header.type) {
    case FrameType::bind:
      return check_bind(header);
    case FrameType::eager:
      return check_eager(header);
    case FrameType::data:
      return check_data(header);
    case FrameType::offer:
      return check_offer(header);
    case FrameType::credit:
      return check_credit(header);
    case FrameType::give_back:
      return check_give_back(header);
    case FrameType::disagree:
      return check_disagree(header);
    case FrameType::notice:
      return check_notice(header);
    case FrameType::failure:
      return check_failure(header);
  }
  expect(false, "type", static_cast<std::uint64_t>(header.type), "1 to 9");
}

}  // namespace

HeaderBytes encode(const FrameHeader& header, std::uint64_t generation) {
  HeaderBytes bytes;
  WireWriter out(bytes);
  out.put(kMagic);
  out.put(kVersion);
  out.put(static_cast<std::uint8_t>(header.type));
  out.put(std::uint16_t{0});
  out.put(generation);
  out.put(header.stream);
  out.put(header.length);
  out.put(header.sequence);
  out.put(header.envelope.contract);
  out.put(header.envelope.sequence);
  out.put(header.total);
  out.put(header.offset);
  return bytes;
}

FrameHeader decode(std::span<const std::byte, kHeaderBytes> bytes, std::uint64_t generation) {
  WireReader in(bytes);
  expect_value("magic", in.get<std::uint32_t>(), kMagic);
  expect_value("version", in.get<std::uint8_t>(), kVersion);
  FrameHeader header;
  header.type = static_cast<FrameType>(in.get<std::uint8_t>());
  expect_value("reserved field", in.get<std::uint16_t>(), 0);
  expect_value("generation", in.get<std::uint64_t>(), generation);
  header.stream = in.get<std::uint32_t>();
  header.length = in.get<std::uint32_t>();
  header.sequence = in.get<std::uint64_t>();
  header.envelope.contract = in.get<std::uint64_t>();
  header.envelope.sequence = in.get<std::uint64_t>();
  header.total = in.get<std::uint64_t>();
  header.offset = in.get<std::uint64_t>();
  check(header);
  return header;
}

ControlFrame make_disagree(StreamId stream, std::uint64_t sequence, const EnvelopeMismatch& mismatch) {
  ControlFrame frame{.header = {.type = FrameType::disagree,
                                .stream = stream,
                                .length = kDisagreeBytes,
                                .sequence = sequence,
                                .envelope = mismatch.mine,
                                .total = mismatch.my_bytes,
                                .offset = 0},
                     .payload = std::vector<std::byte>(kDisagreeBytes)};
  WireWriter out(frame.payload);
  out.put(mismatch.theirs.contract);
  out.put(mismatch.theirs.sequence);
  out.put(static_cast<std::uint64_t>(mismatch.their_bytes));
  return frame;
}

EnvelopeMismatch read_disagree(const FrameHeader& header, ConstBytes payload) {
  WireReader in(payload);
  EnvelopeMismatch mismatch;
  mismatch.mine.contract = in.get<std::uint64_t>();
  mismatch.mine.sequence = in.get<std::uint64_t>();
  mismatch.my_bytes = in.get<std::uint64_t>();
  mismatch.theirs = header.envelope;
  mismatch.their_bytes = header.total;
  return mismatch;
}

}  // namespace lockstep::transport::tcp
