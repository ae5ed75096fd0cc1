// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/update_journal.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/kernels/compute/update/blocks.h"
#include "lockstep/kernels/compute/update/word_sum.h"

namespace lockstep::train {
namespace {

// What is saved of a chunk is to stay in a core's cache until it is overwritten.
constexpr std::size_t kPiece = kernels::kBlockElements / 4;

// How far an update of a bucket has come: so many chunks are updated, and the next one may be, of which is
// saved what it was.
struct Progress {
  std::uint64_t update = 0;
  std::size_t chunks = 0;
  bool is_saved = false;
};

constexpr unsigned kChunkBits = 31;

std::uint64_t to_word(const Progress& progress) {
  return progress.update << (kChunkBits + 1) | std::uint64_t{progress.chunks} << 1 |
         (progress.is_saved ? 1 : 0);
}

Progress from_word(std::uint64_t word) {
  return {.update = word >> (kChunkBits + 1),
          .chunks = static_cast<std::size_t>(word >> 1 & ((std::uint64_t{1} << kChunkBits) - 1)),
          .is_saved = (word & 1) != 0};
}

// All of the bucket are as its update leaves them.
bool is_complete(const Progress& progress, std::size_t chunks) {
  return progress.chunks == chunks && !progress.is_saved;
}

// Nothing is updated by update 0: what is there when a journal begins is all of a bucket. So memory in which
// no journal was begun, which is zeros, has no progress.
bool can_be(const Progress& progress, std::size_t chunks) {
  return progress.chunks <= chunks && (progress.update > 0 || is_complete(progress, chunks));
}

template <typename Array>
Array part_of(Array array, Range elements, std::size_t width) {
  return array.subspan(elements.begin * width, elements.size() * width);
}

// Calls body(array, elements) for pieces of a chunk that have whole words, on any thread; returns the sum of
// what it returns.
template <typename Body>
std::uint64_t sum_over_pieces(std::size_t arrays, Range chunk, const Body& body) {
  const std::size_t pieces = (chunk.size() + kPiece - 1) / kPiece;
  std::atomic<std::uint64_t> sum = 0;
  kernels::parallel_for(arrays * pieces, [&](std::size_t i) {
    const std::size_t begin = chunk.begin + i / arrays * kPiece;
    sum.fetch_add(body(i % arrays, Range{begin, std::min(begin + kPiece, chunk.end)}),
                  std::memory_order_relaxed);
  });
  return sum;
}

template <typename Arrays>
std::uint64_t sum_of(const JournalShape& shape, Range chunk, const Arrays& arrays) {
  return sum_over_pieces(arrays.size(), chunk, [&](std::size_t array, Range elements) {
    return kernels::word_sum(part_of(arrays[array], elements, shape.widths()[array]));
  });
}

}  // namespace

// --- JournalShape

JournalShape::JournalShape(std::vector<std::size_t> elements, std::vector<std::size_t> widths,
                           std::size_t chunk)
    : elements_(std::move(elements)), widths_(std::move(widths)), chunk_(chunk) {
  LOCKSTEP_CHECK(chunk > 0 && chunk % kPiece == 0, "chunks are cut into whole pieces");
  for (std::size_t bucket = 0; bucket < elements_.size(); ++bucket) {
    first_chunks_.push_back(chunks_);
    chunks_ += chunks(bucket);
  }
  undo_begin_ = sum(elements_.size(), 0, 0);
  undo_bytes_ = chunk_ * std::accumulate(widths_.begin(), widths_.end(), std::size_t{0});
}

std::size_t JournalShape::chunk_for(int threads) {
  return threads == 1 ? kPiece : kernels::kBlockElements * static_cast<std::size_t>(threads);
}

bool JournalShape::can_have_chunk(std::int64_t elements) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  return elements > 0 && elements <= kMost && elements % static_cast<std::int64_t>(kPiece) == 0;
}

Range JournalShape::elements_of(std::size_t bucket, std::size_t chunk) const {
  return {chunk * chunk_, std::min((chunk + 1) * chunk_, elements_[bucket])};
}

std::size_t JournalShape::gradients(std::size_t bucket) const {
  return progress(elements_.size()) + bucket * sizeof(transport::Place);
}

std::size_t JournalShape::sum(std::size_t bucket, std::size_t chunk, std::uint64_t update) const {
  const std::size_t begin = bucket < elements_.size() ? first_chunks_[bucket] + chunk : chunks_;
  return gradients(elements_.size()) + (2 * begin + update % 2) * sizeof(std::uint64_t);
}

std::size_t JournalShape::undo(std::size_t array) const {
  return undo_begin_ + chunk_ * std::accumulate(widths_.begin(),
                                                widths_.begin() + static_cast<std::ptrdiff_t>(array),
                                                std::size_t{0});
}

// --- UpdateJournal

UpdateJournal::UpdateJournal(JournalShape shape, comm::Buffer memory)
    : shape_(std::move(shape)), memory_(std::move(memory)) {
  LOCKSTEP_CHECK(memory_.bytes().size() >= shape_.bytes());
  std::ranges::fill(memory_.bytes(), std::byte{0});
}

void UpdateJournal::begin(std::span<const ShareArrays> buckets) {
  update_ = 0;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (std::size_t chunk = 0; chunk < shape_.chunks(bucket); ++chunk) {
      at<std::uint64_t>(shape_.sum(bucket, chunk, 0)) =
          sum_of(shape_, shape_.elements_of(bucket, chunk), buckets[bucket]);
    }
    write_progress(bucket, shape_.chunks(bucket), false);
  }
}

void UpdateJournal::set_gradients(std::size_t bucket, transport::Place place) {
  at<transport::Place>(shape_.gradients(bucket)) = place;
}

// A process is killed between two instructions, and what it has stored until then is there for its peers. The
// fence is for those that look while it lives.
void UpdateJournal::write_progress(std::size_t bucket, std::size_t chunk, bool is_saved) {
  std::atomic_ref word(at<std::uint64_t>(shape_.progress(bucket)));
  word.store(to_word({.update = update_, .chunks = chunk, .is_saved = is_saved}), std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Returns the sum of the chunk.
std::uint64_t UpdateJournal::save(std::size_t bucket, std::size_t chunk, const ShareArrays& arrays) {
  const Range elements = shape_.elements_of(bucket, chunk);
  const std::uint64_t sum = sum_over_pieces(arrays.size(), elements, [&](std::size_t array, Range piece) {
    const std::size_t width = shape_.widths()[array];
    const ConstBytes values = part_of(arrays[array], piece, width);
    std::byte* undo = memory_.bytes().data() + shape_.undo(array) + (piece.begin - elements.begin) * width;
    std::memcpy(undo, values.data(), values.size());
    return kernels::word_sum(values);
  });
  LOCKSTEP_FAILPOINT("train.update.saved");
  write_progress(bucket, chunk, true);
  return sum;
}

void UpdateJournal::update(std::size_t bucket, const ShareArrays& arrays,
                           const std::function<void(Range)>& update) {
  if (shape_.chunks(bucket) == 0) return;
  LOCKSTEP_CHECK(at<std::uint64_t>(shape_.progress(bucket)) ==
                     to_word({.update = update_ - 1, .chunks = shape_.chunks(bucket)}),
                 "every bucket is updated once");
  for (std::size_t chunk = 0; chunk < shape_.chunks(bucket); ++chunk) {
    const Range elements = shape_.elements_of(bucket, chunk);
    const std::uint64_t was = save(bucket, chunk, arrays);
    update(elements);
    LOCKSTEP_FAILPOINT("train.update.chunk");
    // What the chunk was not any more when its update began, it is not afterwards either.
    const std::uint64_t lacks = at<std::uint64_t>(shape_.sum(bucket, chunk, update_ - 1)) - was;
    at<std::uint64_t>(shape_.sum(bucket, chunk, update_)) = sum_of(shape_, elements, arrays) + lacks;
    write_progress(bucket, chunk + 1, false);
  }
}

bool UpdateJournal::is_intact(std::size_t bucket, const ConstShareArrays& arrays) const {
  const Progress progress = from_word(at<std::uint64_t>(shape_.progress(bucket)));
  if (!can_be(progress, shape_.chunks(bucket))) return false;
  for (std::size_t chunk = 0; chunk < shape_.chunks(bucket); ++chunk) {
    const std::uint64_t update = progress.update - (chunk < progress.chunks ? 0 : 1);
    const std::uint64_t sum = sum_of(shape_, shape_.elements_of(bucket, chunk), arrays);
    if (sum != at<std::uint64_t>(shape_.sum(bucket, chunk, update))) return false;
  }
  return true;
}

// --- JournalReader

JournalReader::JournalReader(JournalShape shape, ConstBytes memory)
    : shape_(std::move(shape)), memory_(memory) {
  LOCKSTEP_CHECK(memory_.size() >= shape_.bytes());
}

template <typename T>
T JournalReader::at(std::size_t offset) const {
  T value;
  std::memcpy(&value, memory_.data() + offset, sizeof(value));
  return value;
}

std::uint64_t JournalReader::progress(std::size_t bucket) const {
  // What was read before stays before.
  std::atomic_thread_fence(std::memory_order_acquire);
  std::byte* place = const_cast<std::byte*>(memory_.data()) + shape_.progress(bucket);
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place)).load(std::memory_order_acquire);
}

transport::Place JournalReader::gradients(std::size_t bucket) const {
  return at<transport::Place>(shape_.gradients(bucket));
}

bool JournalReader::in_one_moment(std::size_t bucket, std::chrono::nanoseconds longest,
                                  const std::function<void(std::uint64_t progress)>& read) const {
  for (std::optional<Deadline> deadline;; std::this_thread::yield()) {
    const std::uint64_t before = progress(bucket);
    read(before);
    if (progress(bucket) == before) return true;
    if (!deadline) deadline = Deadline::after(longest);
    if (deadline->passed()) return false;
  }
}

JournalReader::Copied JournalReader::copy(std::size_t bucket, std::uint64_t word, std::uint64_t update,
                                          const ConstShareArrays& from, const ShareArrays& to) const {
  using enum Copied::State;
  const Progress progress = from_word(word);
  const std::size_t chunks = shape_.chunks(bucket);
  if (chunks == 0) return {};  // nobody writes down how far that has come
  const bool is_of_update = progress.update == update;
  const bool is_of_the_one_before = progress.update + 1 == update && is_complete(progress, chunks);
  if (!can_be(progress, chunks) || (!is_of_update && !is_of_the_one_before)) return {of_another_update};
  const std::size_t updated = is_of_update ? progress.chunks : 0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const Range elements = shape_.elements_of(bucket, chunk);
    const bool is_undone = is_of_update && progress.is_saved && chunk == progress.chunks;
    for (std::size_t array = 0; array < from.size(); ++array) {
      const std::size_t width = shape_.widths()[array];
      const ConstBytes values = is_undone ? memory_.subspan(shape_.undo(array), elements.size() * width)
                                          : part_of(from[array], elements, width);
      std::ranges::copy(values, part_of(to[array], elements, width).begin());
    }
    const std::uint64_t sum =
        at<std::uint64_t>(shape_.sum(bucket, chunk, chunk < updated ? update : update - 1));
    if (sum_of(shape_, elements, to) != sum) return {changed};
  }
  return {whole, std::min(updated * shape_.chunk(), shape_.elements(bucket))};
}

}  // namespace lockstep::train
