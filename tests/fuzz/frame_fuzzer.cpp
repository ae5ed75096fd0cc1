// SPDX-License-Identifier: Apache-2.0
//
// A frame header of the tcp transport, and the payload of a disagreement.
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/frame.h"
#include "lockstep/transport/tcp/limits.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::transport::tcp;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kGeneration = 7;
  fuzz::Input input(data, size);
  const ConstBytes bytes = input.take(kHeaderBytes);
  if (bytes.size() < kHeaderBytes) return 0;
  FrameHeader header;
  if (!fuzz::accepts<DataError>([&] { header = decode(bytes.first<kHeaderBytes>(), kGeneration); })) return 0;
  fuzz::require(header.length <= kSegmentBytes, "a payload is within its limit");
  fuzz::require(header.stream < transport::kMaxStreams, "a stream is within its limit");
  const HeaderBytes again = encode(header, kGeneration);
  fuzz::require(std::equal(again.begin(), again.end(), bytes.begin()), "a header survives");

  const ConstBytes payload = input.take(kDisagreeBytes);
  if (header.type != FrameType::disagree || payload.size() < kDisagreeBytes) return 0;
  const transport::EnvelopeMismatch seen = read_disagree(header, payload);
  const transport::EnvelopeMismatch sent = {
      .mine = seen.theirs, .theirs = seen.mine, .my_bytes = seen.their_bytes, .their_bytes = seen.my_bytes};
  const ControlFrame frame = make_disagree(header.stream, header.sequence, sent);
  fuzz::require(frame.header == header, "a disagreement survives");
  fuzz::require(std::equal(payload.begin(), payload.end(), frame.payload.begin()), "so does its payload");
  return 0;
}
