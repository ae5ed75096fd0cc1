// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/transport/tcp/frame.h"
#include "lockstep/transport/tcp/limits.h"

namespace lockstep::transport::tcp {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGeneration = 42;
constexpr Envelope kEnvelope{.contract = 0x1122334455667788, .sequence = 9};

// One good header of each type.
std::vector<FrameHeader> good_headers() {
  return {
      {.type = FrameType::bind, .stream = 0, .length = 0, .sequence = 1, .total = 3, .offset = 8},
      {.type = FrameType::eager,
       .stream = 7,
       .length = 100,
       .sequence = 5,
       .envelope = kEnvelope,
       .total = 100},
      {.type = FrameType::data,
       .stream = 7,
       .length = 1000,
       .sequence = 5,
       .envelope = kEnvelope,
       .total = kSegmentBytes + 1000,
       .offset = kSegmentBytes},
      {.type = FrameType::offer, .stream = 255, .sequence = 5, .envelope = kEnvelope, .total = 1 << 20},
      {.type = FrameType::credit,
       .stream = 7,
       .sequence = 5,
       .envelope = kEnvelope,
       .total = 3 * kSegmentBytes,
       .offset = kSegmentBytes},
      {.type = FrameType::give_back, .stream = 7, .total = 123},
      {.type = FrameType::disagree,
       .stream = 7,
       .length = kDisagreeBytes,
       .sequence = 5,
       .envelope = kEnvelope,
       .total = 10},
      {.type = FrameType::notice, .stream = 7, .length = kNoticeHeadBytes, .sequence = 5},
      {.type = FrameType::failure, .stream = 7, .length = kMaxFailureText},
  };
}

FrameHeader header_of(FrameType type) {
  for (const FrameHeader& header : good_headers()) {
    if (header.type == type) return header;
  }
  throw std::logic_error("no such type");
}

std::string error_of(const FrameHeader& header) {
  try {
    decode(encode(header, kGeneration), kGeneration);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TcpFrame, ReadsBackWhatItWrites) {
  for (const FrameHeader& header : good_headers()) {
    EXPECT_EQ(decode(encode(header, kGeneration), kGeneration), header) << static_cast<int>(header.type);
  }
}

TEST(TcpFrame, StandsOnTheWireAsDocumented) {
  const HeaderBytes bytes = encode(header_of(FrameType::eager), kGeneration);
  const std::vector<int> expected = {'L',  'F',  'R',  'M',  1,    2,    0,    0,    42, 0, 0, 0, 0, 0, 0, 0,
                                     7,    0,    0,    0,    100,  0,    0,    0,    5,  0, 0, 0, 0, 0, 0, 0,
                                     0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 9,  0, 0, 0, 0, 0, 0, 0,
                                     100,  0,    0,    0,    0,    0,    0,    0,    0,  0, 0, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(static_cast<int>(bytes[i]), expected[i]) << "byte " << i;
  }
}

TEST(TcpFrame, RefusesAWrongPreamble) {
  for (const FrameHeader& header : good_headers()) {
    for (std::size_t i = 0; i < 16; ++i) {
      if (i == 5) continue;  // the type, below
      HeaderBytes bytes = encode(header, kGeneration);
      bytes[i] ^= std::byte{0x10};
      EXPECT_THROW(decode(bytes, kGeneration), DataError) << "byte " << i;
    }
    EXPECT_THROW(decode(encode(header, kGeneration + 1), kGeneration), DataError);
  }
}

TEST(TcpFrame, RefusesUnknownTypes) {
  for (int type = 0; type < 256; ++type) {
    FrameHeader header = header_of(FrameType::eager);
    header.type = static_cast<FrameType>(type);
    if (type < 1 || type > 9) {
      EXPECT_THAT(error_of(header), HasSubstr("type is")) << type;
    }
  }
}

// Every field that a type fixes or limits is changed in turn; those it leaves free are not listed.
TEST(TcpFrame, RefusesEveryFieldOutOfItsLimits) {
  struct Mutation {
    FrameType type;
    void (*change)(FrameHeader&);
    const char* field;
  };
  const std::vector<Mutation> mutations = {
      {FrameType::bind, [](FrameHeader& h) { h.stream = 1; }, "stream"},
      {FrameType::bind, [](FrameHeader& h) { h.length = 1; }, "length"},
      {FrameType::bind, [](FrameHeader& h) { h.sequence = 3; }, "link"},
      {FrameType::bind, [](FrameHeader& h) { h.total = 0; }, "number of links"},
      {FrameType::bind, [](FrameHeader& h) { h.total = 17; }, "number of links"},
      {FrameType::bind, [](FrameHeader& h) { h.offset = 0; }, "world"},
      {FrameType::bind, [](FrameHeader& h) { h.offset = kMaxWorld + 1; }, "world"},
      {FrameType::bind, [](FrameHeader& h) { h.envelope = kEnvelope; }, "contract"},
      {FrameType::eager, [](FrameHeader& h) { h.stream = 256; }, "stream"},
      {FrameType::eager, [](FrameHeader& h) { h.length = 0; }, "length"},
      {FrameType::eager, [](FrameHeader& h) { h.length = kEagerBytes + 1; }, "length"},
      {FrameType::eager, [](FrameHeader& h) { h.length = 0xffffffff; }, "length"},
      {FrameType::eager, [](FrameHeader& h) { h.total = 101; }, "total"},
      {FrameType::eager, [](FrameHeader& h) { h.offset = 1; }, "offset"},
      {FrameType::data, [](FrameHeader& h) { h.stream = 0x80000000; }, "stream"},
      {FrameType::data, [](FrameHeader& h) { h.length = 999; }, "length"},
      {FrameType::data, [](FrameHeader& h) { h.length = 0xffffffff; }, "length"},
      {FrameType::data, [](FrameHeader& h) { h.total = 0; }, "total"},
      {FrameType::data, [](FrameHeader& h) { h.total = (std::uint64_t{1} << 48) + 1; }, "total"},
      {FrameType::data, [](FrameHeader& h) { h.offset = kSegmentBytes + 1000; }, "offset"},
      {FrameType::data, [](FrameHeader& h) { h.offset = ~std::uint64_t{0}; }, "offset"},
      {FrameType::data, [](FrameHeader& h) { h.offset = 64; }, "offset"},
      {FrameType::offer, [](FrameHeader& h) { h.stream = 256; }, "stream"},
      {FrameType::offer, [](FrameHeader& h) { h.length = 1; }, "length"},
      {FrameType::offer, [](FrameHeader& h) { h.total = 0; }, "total"},
      {FrameType::offer, [](FrameHeader& h) { h.offset = 1; }, "offset"},
      {FrameType::credit, [](FrameHeader& h) { h.length = 1; }, "length"},
      {FrameType::credit, [](FrameHeader& h) { h.offset = 0; }, "granted"},
      {FrameType::credit, [](FrameHeader& h) { h.offset = h.total + 1; }, "granted"},
      {FrameType::credit, [](FrameHeader& h) { h.offset = 100; }, "granted"},
      {FrameType::credit, [](FrameHeader& h) { h.total = ~std::uint64_t{0}; }, "total"},
      {FrameType::give_back, [](FrameHeader& h) { h.length = 1; }, "length"},
      {FrameType::give_back, [](FrameHeader& h) { h.sequence = 1; }, "sequence"},
      {FrameType::give_back, [](FrameHeader& h) { h.offset = 1; }, "offset"},
      {FrameType::give_back, [](FrameHeader& h) { h.envelope = kEnvelope; }, "contract"},
      {FrameType::disagree, [](FrameHeader& h) { h.length = 0; }, "length"},
      {FrameType::disagree, [](FrameHeader& h) { h.length = 25; }, "length"},
      {FrameType::disagree, [](FrameHeader& h) { h.total = 0; }, "total"},
      {FrameType::disagree, [](FrameHeader& h) { h.offset = 1; }, "offset"},
      {FrameType::notice, [](FrameHeader& h) { h.length = 63; }, "length"},
      {FrameType::notice, [](FrameHeader& h) { h.total = 1; }, "total"},
      {FrameType::notice, [](FrameHeader& h) { h.offset = 1; }, "offset"},
      {FrameType::notice, [](FrameHeader& h) { h.sequence = ~std::uint64_t{0}; }, "sequence"},
      {FrameType::notice, [](FrameHeader& h) { h.envelope.sequence = 1; }, "envelope"},
      {FrameType::failure, [](FrameHeader& h) { h.length = kMaxFailureText + 1; }, "length"},
      {FrameType::failure, [](FrameHeader& h) { h.sequence = 1; }, "sequence"},
      {FrameType::failure, [](FrameHeader& h) { h.total = 1; }, "total"},
      {FrameType::failure, [](FrameHeader& h) { h.offset = 1; }, "offset"},
  };
  for (const Mutation& mutation : mutations) {
    FrameHeader header = header_of(mutation.type);
    mutation.change(header);
    EXPECT_THAT(error_of(header), HasSubstr(mutation.field)) << static_cast<int>(mutation.type);
  }
}

TEST(TcpFrame, ErrorsNameFieldExpectedAndFound) {
  FrameHeader header = header_of(FrameType::eager);
  header.length = 20'000;
  EXPECT_EQ(error_of(header), "bad frame: length is 20000, expected 1 to 16384");
}

TEST(TcpFrame, DisagreementsChangeSides) {
  const EnvelopeMismatch mine{.mine = {1, 2}, .theirs = {3, 4}, .my_bytes = 5, .their_bytes = 6};
  const ControlFrame frame = make_disagree(7, 8, mine);
  EXPECT_EQ(decode(encode(frame.header, kGeneration), kGeneration), frame.header);
  const EnvelopeMismatch theirs = read_disagree(frame.header, frame.payload);
  EXPECT_EQ(theirs.mine, mine.theirs);
  EXPECT_EQ(theirs.theirs, mine.mine);
  EXPECT_EQ(theirs.my_bytes, mine.their_bytes);
  EXPECT_EQ(theirs.their_bytes, mine.my_bytes);
}

}  // namespace
}  // namespace lockstep::transport::tcp
