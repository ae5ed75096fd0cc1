// SPDX-License-Identifier: Apache-2.0
//
// What a rank writes down while it updates its share of the state, in memory that peers still read when it
// was killed (Communicator::memory_lasts()): whoever finds the share then can end the update, and knows
// whether a bit of it has changed by itself. Updates are counted from 1. A bucket is updated chunk by chunk;
// what a chunk was is kept until it is updated.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/mesh/range.h"
#include "lockstep/transport/memory/address_space.h"

namespace lockstep::train {

// The arrays of a bucket, each with one value of every element of the share.
using ShareArrays = std::vector<Bytes>;
using ConstShareArrays = std::vector<ConstBytes>;

// What both sides know of a journal.
class JournalShape {
 public:
  // `elements` by bucket; `widths`: bytes of an element in each array.
  JournalShape(std::vector<std::size_t> elements, std::vector<std::size_t> widths, std::size_t chunk);

  // For kernels with so many threads.
  static std::size_t chunk_for(int threads);
  // Whether a chunk of a peer's may have so many elements.
  static bool can_have_chunk(std::int64_t elements);

  std::size_t buckets() const { return elements_.size(); }
  std::size_t elements(std::size_t bucket) const { return elements_[bucket]; }
  std::size_t chunk() const { return chunk_; }
  std::size_t chunks(std::size_t bucket) const { return (elements_[bucket] + chunk_ - 1) / chunk_; }
  Range elements_of(std::size_t bucket, std::size_t chunk) const;
  std::span<const std::size_t> widths() const { return widths_; }

  std::size_t bytes() const { return undo_begin_ + undo_bytes_; }

  // --- Where things are in the memory of a journal.
  std::size_t progress(std::size_t bucket) const { return bucket * sizeof(std::uint64_t); }
  std::size_t gradients(std::size_t bucket) const;
  // Of a chunk after an update: two are kept, that of the last one and of the one before.
  std::size_t sum(std::size_t bucket, std::size_t chunk, std::uint64_t update) const;
  std::size_t undo(std::size_t array) const;

 private:
  std::vector<std::size_t> elements_;
  std::vector<std::size_t> widths_;
  std::size_t chunk_;
  std::vector<std::size_t> first_chunks_;  // by bucket
  std::size_t chunks_ = 0;                 // of all buckets
  std::size_t undo_begin_ = 0;
  std::size_t undo_bytes_ = 0;
};

// The side of the rank that updates.
class UpdateJournal {
 public:
  UpdateJournal(JournalShape shape, comm::Buffer memory);

  const JournalShape& shape() const { return shape_; }
  ConstBytes memory() const { return memory_.bytes(); }

  // What all buckets are now counts as no update.
  void begin(std::span<const ShareArrays> buckets);

  // Where peers find the gradients of the next update.
  void set_gradients(std::size_t bucket, transport::Place place);

  // All buckets are going to be updated, each once, before the next time.
  void begin_update() { ++update_; }
  // `update` is called for all elements of the bucket, in runs.
  void update(std::size_t bucket, const ShareArrays& arrays, const std::function<void(Range)>& update);

  // Whether all that was not updated is as it was written down; false when that never was.
  bool is_intact(std::size_t bucket, const ConstShareArrays& arrays) const;

 private:
  template <typename T>
  T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(memory_.bytes().data() + offset);
  }
  std::uint64_t save(std::size_t bucket, std::size_t chunk, const ShareArrays& arrays);
  void write_progress(std::size_t bucket, std::size_t chunk, bool is_saved);

  JournalShape shape_;
  comm::Buffer memory_;
  std::uint64_t update_ = 0;
};

// The side of the peer: the memory may change while it is read.
class JournalReader {
 public:
  JournalReader(JournalShape shape, ConstBytes memory);

  const JournalShape& shape() const { return shape_; }

  // What was read in between is what the bucket is, if this is the same before and after.
  std::uint64_t progress(std::size_t bucket) const;
  transport::Place gradients(std::size_t bucket) const;

  // Calls read(progress) once, and again until what it has read is of one moment: however long that takes
  // when the owner is at rest. False when the owner was seen to go on for longer than `longest`.
  bool in_one_moment(std::size_t bucket, std::chrono::nanoseconds longest,
                     const std::function<void(std::uint64_t progress)>& read) const;

  struct Copied {
    enum class State {
      whole,
      of_another_update,  // not of that one, nor as the one before has left it
      changed,            // a bit of it has, by itself
    };
    State state = State::whole;
    std::size_t first = 0;  // from this element on a whole one lacks the update
  };
  // Copies a bucket as it was when its progress was `progress`.
  Copied copy(std::size_t bucket, std::uint64_t progress, std::uint64_t update, const ConstShareArrays& from,
              const ShareArrays& to) const;

 private:
  template <typename T>
  T at(std::size_t offset) const;

  JournalShape shape_;
  ConstBytes memory_;
};

}  // namespace lockstep::train
