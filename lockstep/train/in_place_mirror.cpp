// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/in_place_mirror.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/kernels/compute/update/split.h"
#include "lockstep/mesh/range.h"
#include "lockstep/metrics/progress.h"
#include "lockstep/train/agreement.h"

namespace lockstep::train {
namespace {

// An owner that was seen to move is through with the update of a bucket long before.
constexpr std::chrono::seconds kLongestUpdate{5};

// For ranks to hear of each other's memory, which takes them no time.
constexpr std::chrono::seconds kLongestTelling{30};

// No rank has so many segments.
constexpr transport::Place kNowhere = {.segment = std::numeric_limits<std::uint32_t>::max(), .offset = 0};

Bytes bytes_of(const MirroredShare& share, int quantity, std::size_t bucket) {
  return std::as_writable_bytes(share.of(quantity, bucket));
}

// Why it cannot be used; empty: it can.
std::string problem_of(const JournalReader::Copied& copied) {
  using enum JournalReader::Copied::State;
  if (copied.state == of_another_update) return "it is not of the last step, nor of the one before";
  if (copied.state == changed) return "a bit of it has changed since its last update";
  return "";
}

}  // namespace

InPlaceMirror::InPlaceMirror(const Holding& holding, Weights& weights)
    : holding_(holding), weights_(weights), group_(holding.groups.sharing), shown_(group_.size()) {
  const auto places = gathered_lists(own_places(), group_);
  for (Rank owner = 0; owner < group_.size(); ++owner) {
    if (owner == group_.rank()) continue;
    shown_[owner].emplace(shown_by(owner, places[static_cast<std::size_t>(owner)]));
  }
}

// Where every peer finds it; none when one of them cannot be told so now.
std::optional<transport::Place> InPlaceMirror::shown(ConstBytes memory) const {
  std::optional<transport::Place> place;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    place = group_.place_for(peer, memory);
    if (!place) break;
  }
  return place;
}

// All ranks do so at the same time, and so hear of each other's memory.
transport::Place InPlaceMirror::show(ConstBytes memory) const {
  for (const Deadline deadline = Deadline::after(kLongestTelling); !deadline.passed();
       std::this_thread::yield()) {
    if (const std::optional<transport::Place> place = shown(memory)) return *place;
    for (Rank peer = 0; peer < group_.size(); ++peer) {
      if (group_.is_there(peer)) continue;
      throw PeerLost(fmt::format("rank {} of {} is gone while ranks tell each other where their state is",
                                 peer, group_.name()));
    }
  }
  throw Timeout(fmt::format("a rank of {} did not take in for {} s where the state of rank {} is",
                            group_.name(), kLongestTelling.count(), group_.rank()));
}

// The rank in the world, the chunk of the journal, its place, and those of the arrays of all buckets.
std::vector<std::int64_t> InPlaceMirror::own_places() const {
  std::vector<std::int64_t> places = {holding_.groups.world.rank(),
                                      static_cast<std::int64_t>(weights_.journal()->shape().chunk())};
  const auto add = [&](ConstBytes memory) {
    const transport::Place place = memory.empty() ? transport::Place() : show(memory);
    places.insert(places.end(), {place.segment, static_cast<std::int64_t>(place.offset)});
  };
  add(weights_.journal()->memory());
  for (std::size_t bucket = 0; bucket < holding_.partition.buckets.size(); ++bucket) {
    for (const Bytes array : weights_.arrays(bucket)) add(array);
  }
  return places;
}

// What a peer says is where it says, or a CommError.
InPlaceMirror::Shown InPlaceMirror::shown_by(Rank owner, const std::vector<std::int64_t>& places) const try {
  const std::span<const std::size_t> widths = weights_.journal()->shape().widths();
  const std::size_t buckets = holding_.partition.buckets.size();
  if (places.size() != 2 + 2 * (1 + buckets * widths.size()) || !JournalShape::can_have_chunk(places[1])) {
    throw DataError("these are not places of a journal and its arrays");
  }
  std::vector<std::size_t> elements;
  for (const Bucket& bucket : holding_.partition.buckets) {
    elements.push_back(chunk_range(bucket.elements.size(), static_cast<std::size_t>(group_.size()),
                                   static_cast<std::size_t>(owner))
                           .size());
  }
  auto next = places.begin() + 2;
  const auto memory = [&](std::size_t bytes, std::size_t alignment) {
    const transport::Place place = {.segment = static_cast<std::uint32_t>(next[0]),
                                    .offset = static_cast<std::uint64_t>(next[1])};
    next += 2;
    return bytes == 0 ? ConstBytes() : memory_of(owner, place, bytes, alignment);
  };
  const JournalShape shape(elements, {widths.begin(), widths.end()}, static_cast<std::size_t>(places[1]));
  Shown shown = {.in_world = static_cast<Rank>(places[0]),
                 .journal = JournalReader(shape, memory(shape.bytes(), alignof(std::uint64_t))),
                 .arrays = {}};
  for (const std::size_t count : elements) {
    ConstShareArrays& arrays = shown.arrays.emplace_back();
    for (const std::size_t width : widths) arrays.push_back(memory(count * width, width));
  }
  return shown;
} catch (const DataError& error) {
  throw CommError(
      fmt::format("rank {} of {} has not said where its state is: {}", owner, group_.name(), error.what()));
}

// DataError when the owner has shown no such memory.
ConstBytes InPlaceMirror::memory_of(Rank owner, transport::Place place, std::size_t bytes,
                                    std::size_t alignment) const {
  if (place.offset % alignment != 0) throw DataError("numbers do not begin there");
  return group_.memory_of(owner, place, bytes);
}

void InPlaceMirror::fill() {
  weights_.begin_journal();
  updates_ = 0;
  told_.assign(holding_.partition.buckets.size(), nullptr);
  group_.barrier();
}

void InPlaceMirror::take_gradients(const std::vector<Gradients>& own) {
  for (std::size_t bucket = 0; bucket < own.size(); ++bucket) {
    if (own[bucket].empty() || told_[bucket] == own[bucket].data()) continue;
    const std::optional<transport::Place> place = shown(std::as_bytes(own[bucket]));
    told_[bucket] = place ? own[bucket].data() : nullptr;
    weights_.journal()->set_gradients(bucket, place.value_or(kNowhere));
  }
}

void InPlaceMirror::update(const OptimizerStep& how, float gradient_scale) {
  how_ = how;
  gradient_scale_ = gradient_scale;
  ++updates_;
  weights_.journal()->begin_update();
}

std::vector<MirroredShare> InPlaceMirror::take_shares(std::span<const Rank> gone,
                                                      elastic::Activity* activity) {
  std::vector<MirroredShare> shares;
  int left = 0;  // ranks that are not gone, from this one back to the owner
  for (Rank back = 1; back < group_.size(); ++back) {
    const Rank owner = (group_.rank() - back + group_.size()) % group_.size();
    const Shown& shown = *shown_[static_cast<std::size_t>(owner)];
    const bool is_gone = std::ranges::binary_search(gone, shown.in_world);
    if (!is_gone && ++left == 2) break;
    try {
      shares.push_back(read(owner, shown, activity));
    } catch (const DataError& error) {
      log::warning(left == 0 ? fmt::format("what rank {} has left of the state cannot be used: {}; if nobody "
                                           "else has it, the run goes on from its newest checkpoint",
                                           shown.in_world, error.what())
                             : fmt::format("the share of the state of rank {} has no copy here: {}; should "
                                           "whoever has it be lost before the next generation has begun, the "
                                           "run goes on from its newest checkpoint",
                                           shown.in_world, error.what()));
    }
  }
  return shares;
}

// DataError when it is not whole, or there is no memory for it.
MirroredShare InPlaceMirror::read(Rank owner, const Shown& shown, elastic::Activity* activity) const try {
  MirroredShare share(owner, holding_, weights_.quantities());
  for (std::size_t bucket = 0; bucket < share.shares().size(); ++bucket) {
    read(shown, bucket, share);
    if (activity != nullptr) activity->get_on();
  }
  return share;
} catch (const std::bad_alloc&) {
  std::size_t elements = 0;
  for (std::size_t bucket = 0; bucket < shown.journal.shape().buckets(); ++bucket) {
    elements += shown.journal.shape().elements(bucket);
  }
  const std::size_t bytes = static_cast<std::size_t>(weights_.quantities()) * elements * sizeof(float);
  throw DataError(fmt::format("a copy of it takes {} of memory, which this worker cannot get",
                              metrics::format_memory(bytes)));
}

void InPlaceMirror::read(const Shown& shown, std::size_t bucket, const MirroredShare& share) const {
  const JournalReader& journal = shown.journal;
  const std::size_t elements = journal.shape().elements(bucket);
  // Values in fp32 may be in halves: these come here first.
  std::vector<std::uint16_t> working(weights_.dtype() == DType::fp32 ? 0 : elements);
  std::vector<std::uint16_t> lower(weights_.dtype() == DType::bf16 ? elements : 0);
  ShareArrays to;
  if (weights_.dtype() != DType::fp32) to.push_back(std::as_writable_bytes(std::span(working)));
  to.push_back(weights_.dtype() == DType::bf16 ? std::as_writable_bytes(std::span(lower))
                                               : bytes_of(share, 0, bucket));
  for (int quantity = 1; quantity < weights_.quantities(); ++quantity) {
    to.push_back(bytes_of(share, quantity, bucket));
  }
  std::string problem;  // counts when what was read is of one moment
  const auto read_once = [&](std::uint64_t progress) {
    const JournalReader::Copied copied = journal.copy(bucket, progress, updates_, shown.arrays[bucket], to);
    problem = problem_of(copied);
    if (!problem.empty()) return;
    if (weights_.dtype() == DType::bf16) kernels::join(working, lower, share.of(0, bucket));
    if (copied.first == elements) return;
    try {
      const ConstBytes gradients =
          memory_of(share.owner(), journal.gradients(bucket), elements * sizeof(float), alignof(float));
      share.update(how_, holding_.layout, bucket, copied.first,
                   {reinterpret_cast<const float*>(gradients.data()), elements}, gradient_scale_);
    } catch (const DataError& error) {
      problem = fmt::format("its last update lacks the gradients: {}", error.what());
    }
  };
  if (!journal.in_one_moment(bucket, kLongestUpdate, read_once)) {
    throw DataError(fmt::format("its worker was still updating it after {} s", kLongestUpdate.count()));
  }
  if (!problem.empty()) throw DataError(problem);
}

}  // namespace lockstep::train
