// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/mailroom.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "lockstep/schedule/collective/moves.h"
#include "lockstep/schedule/collective/shelf.h"

namespace lockstep::schedule {
namespace {

constexpr std::uint32_t kInput = 0;
constexpr std::uint32_t kOutput = 1;
constexpr std::uint32_t kScratch = 2;

bool follows(const Slice& slice, const Slice& last) {
  return slice.buffer == last.buffer && slice.range.begin == last.range.end;
}

struct Copy {
  Slice from;
  Slice to;
};

class Mailroom {
 public:
  explicit Mailroom(const Task& task) : task_(task), program_(empty_program(task)) {
    const std::size_t elements = task.count * static_cast<std::size_t>(task.world());
    program_.buffer_elements = {elements, elements};
    program_.scratch_from = kScratch;
    arrived_.push_back({block(kInput, task.rank), block(kOutput, task.rank)});
  }

  void handle(const Stage& stage) {
    if (stage.sends.empty() && stage.receives.empty()) return;
    const std::vector<Slice> leaving = pack(stage.sends);
    // What arrived before goes to its place now, beside the messages; what arrives now has to wait.
    const std::vector<Copy> copies = std::exchange(arrived_, {});
    Round round;
    for (const Delivery& delivery : stage.receives) {
      add(round, receive(delivery.peer, place_for(delivery.parcels)));
    }
    for (std::size_t i = 0; i < leaving.size(); ++i) add(round, send(leaving[i], {stage.sends[i].peer}));
    for (const Copy& copy : copies) add_copy(round, copy);
    add(program_, std::move(round));
    for (const Slice& slice : leaving) give_back(slice);
    for (const Copy& copy : copies) give_back(copy.from);
  }

  Program finish() && {
    Round round;
    for (const Copy& copy : arrived_) add_copy(round, copy);
    add(program_, std::move(round));
    if (shelf_.elements() > 0) program_.buffer_elements.push_back(shelf_.elements());
    return std::move(program_);
  }

 private:
  Slice block(std::uint32_t buffer, Rank rank) const {
    const std::size_t begin = static_cast<std::size_t>(rank) * task_.count;
    return {buffer, {begin, begin + task_.count}};
  }
  static std::uint64_t key_of(const Parcel& parcel) {
    return static_cast<std::uint64_t>(parcel.origin) << 32 | static_cast<std::uint64_t>(parcel.destination);
  }

  static void add_copy(Round& round, const Copy& copy) {
    add(round, {.sources = {local(copy.from)}, .into = copy.to, .send_to = {}});
  }
  // Only scratch is used again.
  void give_back(const Slice& slice) {
    if (slice.buffer == kScratch) shelf_.give_back(slice.range);
  }

  // Where each message leaves from. Parcels that do not lie one after the other are copied so, in a round
  // before.
  std::vector<Slice> pack(const std::vector<Delivery>& sends) {
    std::vector<Slice> leaving;
    std::vector<Slice> copied;
    Round round;
    for (const Delivery& delivery : sends) {
      const std::vector<Slice> slices = places_of(delivery.parcels);
      if (slices.size() == 1) {
        leaving.push_back(slices.front());
        continue;
      }
      leaving.push_back({kScratch, shelf_.take(delivery.parcels.size() * task_.count)});
      std::size_t at = leaving.back().range.begin;
      for (const Slice& slice : slices) {
        add_copy(round, {slice, {kScratch, {at, at + slice.range.size()}}});
        at += slice.range.size();
      }
      copied.insert(copied.end(), slices.begin(), slices.end());
    }
    add(program_, std::move(round));
    for (const Slice& slice : copied) give_back(slice);
    return leaving;
  }

  // The parcels are about to leave: what lies together is one slice.
  std::vector<Slice> places_of(const std::vector<Parcel>& parcels) {
    std::vector<Slice> slices;
    for (const Parcel& parcel : parcels) {
      const Slice place = take_from_place(parcel);
      if (!slices.empty() && follows(place, slices.back())) {
        slices.back().range.end = place.range.end;
      } else {
        slices.push_back(place);
      }
    }
    return slices;
  }
  Slice take_from_place(const Parcel& parcel) {
    if (parcel.origin == task_.rank) return block(kInput, parcel.destination);
    return {kScratch, held_.extract(key_of(parcel)).mapped()};
  }

  // Where a message arrives: at its destination if it can, else in scratch.
  Slice place_for(const std::vector<Parcel>& parcels) {
    if (const Slice home = block(kOutput, parcels.front().origin); is_all_for_us(parcels)) {
      return {kOutput, {home.range.begin, home.range.begin + parcels.size() * task_.count}};
    }
    const Slice place{kScratch, shelf_.take(parcels.size() * task_.count)};
    std::size_t begin = place.range.begin;
    for (const Parcel& parcel : parcels) {
      keep(parcel, {begin, begin + task_.count});
      begin += task_.count;
    }
    return place;
  }
  // And in the order of the output.
  bool is_all_for_us(const std::vector<Parcel>& parcels) const {
    Rank origin = parcels.front().origin;
    for (const Parcel& parcel : parcels) {
      if (parcel.destination != task_.rank || parcel.origin != origin++) return false;
    }
    return true;
  }
  void keep(const Parcel& parcel, Range place) {
    if (parcel.destination != task_.rank) {
      held_[key_of(parcel)] = place;
      return;
    }
    const Copy copy{{kScratch, place}, block(kOutput, parcel.origin)};
    if (!arrived_.empty() && follows(copy.from, arrived_.back().from) &&
        follows(copy.to, arrived_.back().to)) {
      arrived_.back().from.range.end = copy.from.range.end;
      arrived_.back().to.range.end = copy.to.range.end;
    } else {
      arrived_.push_back(copy);
    }
  }

  const Task& task_;
  Program program_;
  Shelf shelf_;
  std::unordered_map<std::uint64_t, Range> held_;  // parcels of others on their way, in scratch
  std::vector<Copy> arrived_;                      // parcels for this rank, to be copied out
};

}  // namespace

Program mailroom_program(const Task& task, const Itinerary& itinerary) {
  Mailroom mailroom(task);
  if (task.count == 0) return std::move(mailroom).finish();
  for (const Stage& stage : itinerary) mailroom.handle(stage);
  return std::move(mailroom).finish();
}

}  // namespace lockstep::schedule
