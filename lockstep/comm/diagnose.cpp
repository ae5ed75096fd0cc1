// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/diagnose.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/group.h"

namespace lockstep::comm {
namespace {

// How long a rank that holds a message it cannot use waits to hear what its peer is doing.
constexpr std::chrono::milliseconds kPatience{50};

// A stalled rank beats every 10 ms or so; one that has not been heard for this long is frozen or gone.
constexpr std::chrono::milliseconds kFreshPulse{150};

// Between the rank that failed first and its reason, in what is told to others.
constexpr std::string_view kPassedOn = " failed: ";

// The call with this sequence as users count: from 0 in every group.
std::uint64_t call_number(const Operation& operation, std::uint64_t sequence) {
  return operation.point_to_point ? 0 : sequence - operation.group->place.first_sequence;
}

// Barriers and empty messages have no bytes that users know of: none are told.
CommFailure failure_at(const Operation& operation, const Waiting& waiting) {
  return {.operation = operation_name(operation.contract),
          .sequence = call_number(operation, operation.sequence),
          .group = operation.group->settings.name,
          .peer = in_world(*operation.group, waiting.peer),
          .done_bytes = waiting.done_bytes,
          .total_bytes = operation.contract.count == 0 ? 0 : waiting.total_bytes,
          .waited = operation.deadline->waited()};
}

// Whatever failed first elsewhere explains this wait better than the wait itself.
std::exception_ptr failure_elsewhere(const Operation& operation, transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank) continue;
    if (const std::optional<std::string> why = endpoint.failure_of(group.members[rank], group.first_stream)) {
      const Report first = first_cause(in_world(group, rank), *why);
      return std::make_exception_ptr(
          Aborted(fmt::format("{}: rank {}{}{}", place(operation), first.rank, kPassedOn, first.why)));
    }
  }
  return nullptr;
}

// A call that ranks are compared about, and how users know it.
struct Call {
  const Contract& contract;
  std::uint64_t sequence;
  std::string place;
};

std::exception_ptr contract_broken(const Operation& operation, const Call& call,
                                   transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  const transport::StreamId stream = group.collective_stream(operation.stream);
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank) continue;
    const auto notice = endpoint.notice_of(group.members[rank], stream, call.sequence);
    if (!notice) continue;
    const Contract theirs = from_notice(*notice);
    if (theirs == call.contract) continue;
    // The same call by name can still be cut differently.
    const std::string_view detail = describe(theirs) == describe(call.contract)
                                        ? " with another grid, other lanes, segments or hosts"
                                        : "";
    return std::make_exception_ptr(ContractMismatch(fmt::format(
        "{}: rank {} calls {} but rank {} calls {}{}; all ranks of a group must make the same calls in the "
        "same order",
        call.place, in_world(group, group.rank), describe(call.contract), in_world(group, rank),
        describe(theirs), detail)));
  }
  return nullptr;
}

std::exception_ptr contract_broken(const Operation& operation, transport::Endpoint& endpoint) {
  return contract_broken(operation, {operation.contract, operation.sequence, place(operation)}, endpoint);
}

std::exception_ptr peer_lost(const Operation& operation, transport::Endpoint& endpoint) {
  // Only a peer that we wait for counts: others may have done their part and left.
  for (const Waiting& waiting : operation.execution->waiting()) {
    if (!endpoint.alive(operation.group->members[waiting.peer])) {
      return std::make_exception_ptr(PeerLost(failure_at(operation, waiting)));
    }
  }
  return nullptr;
}

// Its newest notice of the stream: whoever is late for an operation may be stalled in an earlier one.
void hear(Operation::Heard& heard, Rank rank, transport::StreamId stream, transport::Endpoint& endpoint) {
  const std::uint64_t calls = endpoint.notices_of(rank, stream);
  if (calls == 0) return;
  const auto notice = endpoint.notice_of(rank, stream, calls - 1);
  if (!notice) return;
  const Pulse pulse = pulse_of(*notice);
  if (pulse.beats != heard.pulse.beats) heard.changed = Clock::now();
  heard.pulse = pulse;
}

// Whoever waits itself beats.
bool beats(const Operation& operation, const Operation::Heard& heard) {
  const auto fresh = std::max<Clock::duration>(operation.timeout / 4, kFreshPulse);
  return heard.pulse.beats > 0 && Clock::now() - heard.changed < fresh;
}

// Of those that `awaited` waits for, directly or through others that wait themselves, the one that shows no
// sign of life.
Rank silent_rank(const Operation& operation, const std::vector<Operation::Heard>& all, Rank awaited,
                 Rank me) {
  Rank suspect = awaited;
  for (std::size_t hops = 0; hops < all.size(); ++hops) {
    const Operation::Heard& heard = all[static_cast<std::size_t>(suspect)];
    const Rank next = heard.pulse.waits_for;
    if (!beats(operation, heard) || next < 0 || static_cast<std::size_t>(next) >= all.size() || next == me)
      break;
    suspect = next;
  }
  return suspect;
}

std::exception_ptr silent(const Operation& operation, const Waiting& waiting, Rank culprit) {
  CommFailure failure = failure_at(operation, waiting);
  failure.peer = culprit;
  return std::make_exception_ptr(Timeout(failure));
}

std::exception_ptr message_timed_out(const Operation& operation, transport::Endpoint& endpoint) {
  const std::vector<Waiting> waiting = operation.execution->waiting();
  const Waiting blamed = waiting.empty() ? Waiting{} : waiting.front();
  const Rank peer = in_world(*operation.group, blamed.peer);
  return silent(operation, blamed,
                peer < 0 ? peer : silent_rank(operation, operation.heard_in_world, peer, endpoint.rank()));
}

// Of all that is waited for, what `peer` has to bring itself. It may be nothing, when others wait for it.
Waiting what_is_missing(const std::vector<Waiting>& waiting, Rank peer) {
  const auto own = std::ranges::find(waiting, peer, &Waiting::peer);
  return own != waiting.end() ? *own : Waiting{.peer = peer};
}

std::exception_ptr timed_out(const Operation& operation, transport::Endpoint& endpoint) {
  if (operation.point_to_point) return message_timed_out(operation, endpoint);
  const Group& group = *operation.group;
  const std::vector<Waiting> waiting = operation.execution->waiting();
  Waiting blamed = {.peer = awaited_peer(operation)};
  const transport::StreamId stream = group.collective_stream(operation.stream);
  const auto calls = [&](Rank rank) { return endpoint.notices_of(group.members[rank], stream); };
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank != group.rank && calls(rank) <= operation.sequence) {
      blamed.peer = rank;
      break;
    }
  }
  if (blamed.peer < 0) return silent(operation, blamed, blamed.peer);
  blamed = what_is_missing(waiting, silent_rank(operation, operation.heard, blamed.peer, group.rank));
  const Rank late = in_world(group, blamed.peer);
  const Rank culprit = silent_rank(operation, operation.heard_in_world, late, endpoint.rank());
  const std::uint64_t made = calls(blamed.peer);
  if (made > operation.sequence) return silent(operation, blamed, culprit);
  const double waited = std::chrono::duration<double>(operation.deadline->waited()).count();
  const std::string last =
      made <= group.place.first_sequence
          ? "no call of it is known here"
          : fmt::format("its last known call there was #{}", call_number(operation, made - 1));
  const std::string why = culprit == late ? "" : fmt::format(", because it waits for rank {}", culprit);
  const std::string progress =
      blamed.total_bytes == 0 ? ""
                              : fmt::format(" and {} of {} bytes", blamed.done_bytes, blamed.total_bytes);
  return std::make_exception_ptr(Timeout(fmt::format("{}: rank {} has not arrived after {:.1f} s{} ({}){}",
                                                     place(operation), late, waited, progress, last, why)));
}

// Told by the envelopes alone: the message may belong to another call that shares the channel.
std::exception_ptr message_disagreement(const Operation& operation) {
  const Group& group = *operation.group;
  const auto described = [](const transport::Envelope& envelope) {
    return describe(from_message_word(envelope.sequence));
  };
  return std::make_exception_ptr(ContractMismatch(fmt::format(
      "send/recv on {}: rank {} calls {} but rank {} calls {}; the two ends of a message must name the same "
      "dtype and count, and messages of a stream are matched in the order of the calls",
      group.settings.name, in_world(group, group.rank), described(operation.mismatch->mine),
      in_world(group, operation.script->rounds().front().peers.front().rank),
      described(operation.mismatch->theirs))));
}

std::exception_ptr disagreement(const Operation& operation, transport::Endpoint& endpoint) {
  if (std::exception_ptr error = failure_elsewhere(operation, endpoint)) return error;
  if (operation.point_to_point) return message_disagreement(operation);
  if (std::exception_ptr error = contract_broken(operation, endpoint)) return error;
  if (operation.deadline->waited() < kPatience && !operation.deadline->passed()) return nullptr;
  const transport::EnvelopeMismatch& mismatch = *operation.mismatch;
  return std::make_exception_ptr(ContractMismatch(fmt::format(
      "{}: this rank ({}) expects a message of {} bytes of call #{} with contract {:016x}, its peer has one "
      "of "
      "{} bytes of call #{} with contract {:016x}; all ranks of a group must make the same calls in the same "
      "order",
      place(operation), describe(operation.contract), mismatch.my_bytes,
      call_number(operation, mismatch.mine.sequence), mismatch.mine.contract, mismatch.their_bytes,
      call_number(operation, mismatch.theirs.sequence), mismatch.theirs.contract)));
}

}  // namespace

// Looks for what failure_elsewhere() of the reporter put in front of the first cause.
Report first_cause(Rank reporter, const std::string& why) {
  constexpr std::string_view kRank = ": rank ";
  const std::size_t passed_on = why.find(kPassedOn);
  if (passed_on == std::string::npos) return {.rank = reporter, .why = why};
  const std::size_t before = why.rfind(kRank, passed_on);
  if (before == std::string::npos) return {.rank = reporter, .why = why};
  Report first{.rank = -1, .why = why.substr(passed_on + kPassedOn.size())};
  const char* const end = why.data() + passed_on;
  const auto [stopped, error] = std::from_chars(why.data() + before + kRank.size(), end, first.rank);
  if (error != std::errc() || stopped != end || first.rank < 0) return {.rank = reporter, .why = why};
  return first;
}

std::string place(const Operation& operation) {
  return fmt::format("{} #{} on {}", operation_name(operation.contract),
                     call_number(operation, operation.sequence), operation.group->settings.name);
}

transport::StreamId world_pulse_stream() {
  return first_stream_of(0) + kStreamsPerGroup;
}

Rank in_world(const Group& group, Rank rank) {
  return rank < 0 ? rank : group.members[static_cast<std::size_t>(rank)];
}

Rank awaited_peer(const Operation& operation) {
  const std::vector<Waiting> waiting = operation.execution->waiting();
  const auto is_silent = [&](const Waiting& message) {
    const auto peer = static_cast<std::size_t>(message.peer);
    return peer < operation.heard.size() && !beats(operation, operation.heard[peer]);
  };
  const auto silent = std::ranges::find_if(waiting, is_silent);
  if (silent != waiting.end()) return silent->peer;
  return waiting.empty() ? -1 : waiting.front().peer;
}

void listen(Operation& operation, transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  operation.heard_in_world.resize(static_cast<std::size_t>(endpoint.world()));
  for (Rank rank = 0; rank < endpoint.world(); ++rank) {
    if (rank == endpoint.rank()) continue;
    hear(operation.heard_in_world[static_cast<std::size_t>(rank)], rank, world_pulse_stream(), endpoint);
  }
  if (operation.point_to_point) return;
  const transport::StreamId stream = group.collective_stream(operation.stream);
  operation.heard.resize(static_cast<std::size_t>(group.size()));
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank) continue;
    if (endpoint.notices_of(group.members[rank], stream) <= group.place.first_sequence) continue;
    hear(operation.heard[static_cast<std::size_t>(rank)], group.members[rank], stream, endpoint);
  }
}

std::exception_ptr diagnose_unheard(const Operation& operation, transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  if (std::exception_ptr error = failure_elsewhere(operation, endpoint)) return error;
  if (const std::optional<Contract>& before = group.streams[operation.stream].unheard) {
    const std::uint64_t sequence = operation.sequence - 1;
    const std::string where = fmt::format("{} #{} on {}", operation_name(*before),
                                          call_number(operation, sequence), group.settings.name);
    if (std::exception_ptr error = contract_broken(operation, {*before, sequence, where}, endpoint))
      return error;
  }
  for (const Script::Round& round : operation.script->rounds()) {
    for (const Script::Peer& peer : round.peers) {
      // One that only sends may have done that and left.
      if (peer.sends == 0 || endpoint.alive(group.members[peer.rank])) continue;
      // A rank that fails says why before it goes: by now it can be read.
      if (std::exception_ptr error = failure_elsewhere(operation, endpoint)) return error;
      return std::make_exception_ptr(PeerLost({.operation = operation_name(operation.contract),
                                               .sequence = call_number(operation, operation.sequence),
                                               .group = group.settings.name,
                                               .peer = in_world(group, peer.rank)}));
    }
  }
  return nullptr;
}

std::exception_ptr diagnose(const Operation& operation, transport::Endpoint& endpoint) {
  if (operation.mismatch) return disagreement(operation, endpoint);
  if (std::exception_ptr error = failure_elsewhere(operation, endpoint)) return error;
  if (!operation.point_to_point) {
    if (std::exception_ptr error = contract_broken(operation, endpoint)) return error;
  }
  if (std::exception_ptr error = peer_lost(operation, endpoint)) {
    // A rank that fails says why before it goes: by now it can be read.
    const std::exception_ptr first = failure_elsewhere(operation, endpoint);
    return first ? first : error;
  }
  return operation.deadline->passed() ? timed_out(operation, endpoint) : nullptr;
}

}  // namespace lockstep::comm
