// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/common_instant.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lockstep/base/bytes.h"

namespace lockstep::train {
namespace {

using std::chrono::nanoseconds;

constexpr int kQuestions = 32;  // of each host; a few of them find all threads awake and the network free
constexpr comm::Options kOneNumber = {.dtype = DType::int64};

std::int64_t number_of(Clock::time_point time) {
  return nanoseconds(time.time_since_epoch()).count();
}

Clock::time_point time_of(std::int64_t number) {
  return Clock::time_point(nanoseconds(number));
}

// The rank that asks for all of its host.
Rank asker_for(Rank rank, const std::vector<int>& hosts) {
  const int host = hosts[static_cast<std::size_t>(rank)];
  return static_cast<Rank>(std::ranges::find(hosts, host) - hosts.begin());
}

ClockOffset ask(const comm::Communicator& world) {
  std::vector<ClockQuestion> questions(kQuestions);
  for (ClockQuestion& question : questions) {
    std::int64_t number = 0;
    question.asked = Clock::now();
    world.send(0, as_writable_bytes_of(number), kOneNumber);
    world.recv(0, as_writable_bytes_of(number), kOneNumber);
    question.heard = Clock::now();
    question.answered = time_of(number);
  }
  return clock_offset(questions);
}

void answer(Rank asker, const comm::Communicator& world) {
  for (int i = 0; i < kQuestions; ++i) {
    std::int64_t number = 0;
    world.recv(asker, as_writable_bytes_of(number), kOneNumber);
    number = number_of(Clock::now());
    world.send(asker, as_writable_bytes_of(number), kOneNumber);
  }
}

// Of the clock of rank 0 from that of this rank. The same on all ranks of a host.
ClockOffset agreed_offset(const comm::Communicator& world) {
  const std::vector<int> hosts = world.hosts();
  const Rank me = world.rank();
  ClockOffset mine;
  for (Rank asker = 1; asker < world.size(); ++asker) {
    if (asker_for(asker, hosts) != asker) continue;
    if (me == asker) mine = ask(world);
    if (me == 0) answer(asker, world);
  }
  std::vector<std::int64_t> all(2 * hosts.size(), 0);  // by rank
  all[2 * static_cast<std::size_t>(me)] = mine.ahead.count();
  all[2 * static_cast<std::size_t>(me) + 1] = mine.error.count();
  world.all_reduce(std::as_writable_bytes(std::span(all)), kOneNumber);
  const auto from = 2 * static_cast<std::size_t>(asker_for(me, hosts));
  return {.ahead = nanoseconds(all[from]), .error = nanoseconds(all[from + 1])};
}

}  // namespace

ClockOffset clock_offset(std::span<const ClockQuestion> questions) {
  const auto round_trip = [](const ClockQuestion& question) { return question.heard - question.asked; };
  const ClockQuestion& best = *std::ranges::min_element(questions, {}, round_trip);
  const nanoseconds half = round_trip(best) / 2;
  return {.ahead = best.answered - (best.asked + half), .error = half};
}

CommonInstant common_instant(const comm::Communicator& world) {
  std::int64_t start = number_of(Clock::now());
  const ClockOffset offset = agreed_offset(world);
  world.broadcast(as_writable_bytes_of(start), kOneNumber);
  return {.here = time_of(start) - offset.ahead, .error = offset.error};
}

}  // namespace lockstep::train
