// SPDX-License-Identifier: Apache-2.0
//
// What two ranks share of one channel: plain words in memory that both map. Each word is written by one side
// only, and words of different writers never share a cache line. For the direction from S to R:
//
//   SenderWords   (written by S)  a ring of parcels, one per piece of a message, and the staging bytes
//   ReceiverWords (written by R)  how far R has got, and a ring of grants: memory that S may write into
//
// A parcel and a grant carry their own number, so polling the one line where the next is due is enough.
// Words are read once, into locals, and checked there: a peer's later changes cannot undo a check.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::transport {

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::uint64_t kParcels = 64;
inline constexpr std::uint64_t kGrants = 64;
inline constexpr std::size_t kStagingBytes = std::size_t{256} * 1024;

// A long message that the receiver cannot read in place passes through staging in pieces of this size, so
// that copying in and copying out overlap.
inline constexpr std::size_t kPieceBytes = std::size_t{32} * 1024;

// Up to this size a message is copied into staging even if the receiver could read it in place: the sender is
// done at once, and nobody waits for an answer.
inline constexpr std::size_t kEagerBytes = std::size_t{16} * 1024;

// How a piece travels.
enum class Kind : std::uint32_t {
  staged = 1,  // in the sender's staging bytes, at `offset`
  lent = 2,    // in the sender's own memory, at `offset` of `segment`; always the whole message
  landed = 3,  // already in the memory that the receiver granted; always the whole message
};

struct alignas(kCacheLine) Parcel {
  Word number;  // 1 + the count of parcels before it, once the other words are valid
  Word contract;
  Word sequence;
  Word message_bytes;
  Word kind_and_segment;  // kind in the low half, segment in the high half
  Word offset;  // staged: a position that only grows; modulo kStagingBytes it is the place in staging
  Word bytes;   // of this piece
};

struct alignas(kCacheLine) Grant {
  Word number;  // 1 + the count of messages before the granted one, once the other words are valid
  Word contract;
  Word sequence;
  Word bytes;
  Word segment;
  Word offset;
};

struct ReceiverWords {
  alignas(kCacheLine) Word taken;  // parcels that S may reuse
  Word consumed;                   // the position up to which S may reuse staging
  Grant grants[kGrants];
  // 1 + the count of parcels before the loan that R is reading; 0: none. In a line that S does not watch.
  alignas(kCacheLine) Word reading;
};

struct SenderWords {
  alignas(kCacheLine) Word revoked;  // not 0: S has given up; what it lent may change under the reader's eyes
  Word writing;                      // the number of the grant that S is writing into; 0: none
  Parcel parcels[kParcels];
  alignas(kCacheLine) std::byte staging[kStagingBytes];
};

// One rank's own words of one channel, in memory that it makes and the peer only reads. Valid when
// zero-filled.
struct alignas(4096) ChannelBlock {
  ReceiverWords incoming;
  SenderWords outgoing;
};
static_assert(sizeof(Parcel) == kCacheLine && sizeof(Grant) == kCacheLine);
static_assert(kStagingBytes % kPieceBytes == 0 && kEagerBytes <= kPieceBytes &&
              4 * kPieceBytes <= kStagingBytes);

}  // namespace lockstep::transport
