// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/diagnose.h"

#include <chrono>
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

std::string place(const Operation& operation) {
  return fmt::format("{} #{} on {}", operation_name(operation.contract), operation.sequence,
                     operation.group->settings.name);
}

CommFailure failure_at(const Operation& operation, const Waiting& waiting) {
  return {.operation = operation_name(operation.contract),
          .sequence = operation.sequence,
          .group = operation.group->settings.name,
          .peer = waiting.peer,
          .done_bytes = waiting.done_bytes,
          .total_bytes = waiting.total_bytes,
          .waited = operation.deadline->waited()};
}

// Whatever failed first elsewhere explains this wait better than the wait itself.
std::exception_ptr failure_elsewhere(const Operation& operation, transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank) continue;
    if (const std::optional<std::string> why = endpoint.failure_of(group.members[rank], group.first_stream)) {
      return std::make_exception_ptr(
          Aborted(fmt::format("{}: rank {} failed: {}", place(operation), rank, *why)));
    }
  }
  return nullptr;
}

std::exception_ptr contract_broken(const Operation& operation, transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  const transport::StreamId stream = group.collective_stream(operation.stream);
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank) continue;
    const auto notice = endpoint.notice_of(group.members[rank], stream, operation.sequence);
    if (!notice) continue;
    const Contract theirs = from_notice(*notice);
    if (theirs == operation.contract) continue;
    // The same call by name can still be cut differently.
    const std::string_view detail =
        describe(theirs) == describe(operation.contract) ? " with other lanes, segments or hosts" : "";
    return std::make_exception_ptr(ContractMismatch(fmt::format(
        "{}: rank {} calls {} but rank {} calls {}{}; all ranks of a group must make the same calls in the "
        "same order",
        place(operation), group.rank, describe(operation.contract), rank, describe(theirs), detail)));
  }
  return nullptr;
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

std::exception_ptr timed_out(const Operation& operation, transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  const transport::StreamId stream = group.collective_stream(operation.stream);
  const double waited = std::chrono::duration<double>(operation.deadline->waited()).count();
  for (Rank rank = 0; rank < group.size() && !operation.point_to_point; ++rank) {
    if (rank == group.rank) continue;
    const std::uint64_t calls = endpoint.notices_of(group.members[rank], stream);
    if (calls > operation.sequence) continue;
    const std::string last = calls == 0 ? "no call of it is known here"
                                        : fmt::format("its last known call there was #{}", calls - 1);
    return std::make_exception_ptr(Timeout(fmt::format("{}: rank {} has not arrived after {:.1f} s ({})",
                                                       place(operation), rank, waited, last)));
  }
  const std::vector<Waiting> waiting = operation.execution->waiting();
  return std::make_exception_ptr(
      Timeout(failure_at(operation, waiting.empty() ? Waiting{} : waiting.front())));
}

std::exception_ptr disagreement(const Operation& operation, transport::Endpoint& endpoint) {
  if (std::exception_ptr error = failure_elsewhere(operation, endpoint)) return error;
  if (!operation.point_to_point) {
    if (std::exception_ptr error = contract_broken(operation, endpoint)) return error;
    if (operation.deadline->waited() < kPatience) return nullptr;
  }
  const transport::EnvelopeMismatch& mismatch = *operation.mismatch;
  if (operation.point_to_point) {
    const std::vector<Waiting> waiting = operation.execution->waiting();
    return std::make_exception_ptr(ContractMismatch(
        fmt::format("send/recv on {}: this rank and rank {} do not agree on a message: {} of {} bytes here, "
                    "{} bytes there; both must "
                    "name the same dtype and size",
                    operation.group->settings.name, waiting.empty() ? -1 : waiting.front().peer,
                    describe(operation.contract), mismatch.my_bytes, mismatch.their_bytes)));
  }
  return std::make_exception_ptr(ContractMismatch(fmt::format(
      "{}: this rank ({}) expects a message of {} bytes of call #{} with contract {:016x}, its peer has one "
      "of "
      "{} bytes of call #{} with contract {:016x}; all ranks of a group must make the same calls in the same "
      "order",
      place(operation), describe(operation.contract), mismatch.my_bytes, mismatch.mine.sequence,
      mismatch.mine.contract, mismatch.their_bytes, mismatch.theirs.sequence, mismatch.theirs.contract)));
}

}  // namespace

std::exception_ptr diagnose(const Operation& operation, transport::Endpoint& endpoint) {
  if (operation.mismatch) return disagreement(operation, endpoint);
  if (std::exception_ptr error = failure_elsewhere(operation, endpoint)) return error;
  if (!operation.point_to_point) {
    if (std::exception_ptr error = contract_broken(operation, endpoint)) return error;
  }
  if (std::exception_ptr error = peer_lost(operation, endpoint)) return error;
  return operation.deadline->passed() ? timed_out(operation, endpoint) : nullptr;
}

}  // namespace lockstep::comm
