// SPDX-License-Identifier: Apache-2.0
//
// What travels between ranks over MPI. A message of a channel is cut into frames of at most kFramePayload
// bytes; each is one MPI message, a DataHeader and its payload, tagged with the stream. Notices, failures and
// farewells are ControlFrames with a tag of their own. Integers are as the host has them: magic and version
// find out a peer of another byte order or build. The generation is in no frame: the communicator of an
// endpoint is its own, so nothing from an earlier one can arrive on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/channel.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::transport::mpi {

inline constexpr int kControlTag = static_cast<int>(kMaxStreams);
inline constexpr std::size_t kFramePayload = std::size_t{256} * 1024;

// To be raised with every change of a frame.
inline constexpr std::uint32_t kFrameVersion = 1;

struct DataHeader {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kFrameVersion;
  Envelope envelope;
  std::uint64_t message = 0;        // its number on the channel
  std::uint64_t message_bytes = 0;  // of the whole message
  std::uint64_t offset = 0;         // of this frame's payload in it
  std::uint64_t payload_bytes = 0;
  std::uint64_t notices = 0;  // how many the sender has published on this stream; 0: none
  NoticeHead newest_notice = {};

  static constexpr std::uint32_t kMagic = 0x4c446174;  // "LDat"
};
static_assert(sizeof(DataHeader) == 128, "the payload that follows is aligned to 64 bytes");

enum class ControlKind : std::uint32_t { notice = 1, failure = 2, goodbye = 3 };

struct ControlFrame {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kFrameVersion;
  ControlKind kind = ControlKind::notice;
  StreamId stream = 0;
  std::uint64_t index = 0;       // of the notice
  std::uint64_t text_bytes = 0;  // of the failure's text
  NoticeHead head = {};
  std::array<char, kMaxFailureText> text = {};

  static constexpr std::uint32_t kMagic = 0x4c43746c;  // "LCtl"
};

// Memory for one data frame, aligned to 64 bytes.
class Frame {
 public:
  Frame() : memory_(static_cast<std::byte*>(::operator new(kBytes, kAlignment))) {}

  Bytes all() { return {memory_.get(), kBytes}; }
  ConstBytes all() const { return {memory_.get(), kBytes}; }
  Bytes payload() { return all().subspan(sizeof(DataHeader)); }

 private:
  static constexpr std::size_t kBytes = sizeof(DataHeader) + kFramePayload;
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

// Frames that are not in use.
class FramePool {
 public:
  Frame take() {
    if (free_.empty()) {
      return {};
    }
    Frame frame = std::move(free_.back());
    free_.pop_back();
    return frame;
  }
  void give_back(Frame frame) { free_.push_back(std::move(frame)); }

 private:
  std::vector<Frame> free_;
};

}  // namespace lockstep::transport::mpi
