// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/comm/diagnose.h"
#include "lockstep/comm/group.h"
#include "lockstep/comm/notices.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

// More than writing a long message into the memory of a peer takes.
constexpr auto kPeerPatience = 200ms;

// For the reports of a failure to leave: nobody may drive for long after it, and peers would wait in vain.
constexpr auto kTellTime = 500ms;

// Short enough to need no memory.
constexpr const char* kNoMemory = "no memory left";

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  } catch (const std::exception& exception) {
    try {
      return exception.what();
    } catch (const std::bad_alloc&) {
      return kNoMemory;
    }
  }
}

// Both without what they should say when there is no memory for it.
std::exception_ptr broken(const std::string& why) try {
  return std::make_exception_ptr(
      Aborted(fmt::format("the group is unusable since an earlier failure: {}", why)));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

std::exception_ptr not_begun(const Operation& operation, const char* why) try {
  return std::make_exception_ptr(Aborted(fmt::format("{}: {}", place(operation), why)));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

// Lets in what the peers say about earlier operations.
void hear_all(std::span<const Port> ports) {
  for (const Port& port : ports) {
    try {
      if (port.channel != nullptr) port.channel->pump();
    } catch (const transport::EnvelopeMismatch&) {
      // About a message that an earlier operation had sent. The next one on the channel meets it again.
    }
  }
}

// A message that is asked for or offered ahead: until somebody waits for it, its peer may compute as long as
// it must.
bool has_time(const Operation& operation) {
  return operation.point_to_point && operation.in_background &&
         !operation.awaited.load(std::memory_order_relaxed);
}

// Memory of its caller.
bool uses(const Operation& operation, Bytes memory) {
  const std::vector<std::size_t>& elements = operation.script->program().buffer_elements;
  for (std::size_t i = 0; i < operation.buffers.size(); ++i) {
    const std::size_t bytes = elements[i] * size_of(operation.contract.dtype);
    if (overlap(Bytes{operation.buffers[i], bytes}, memory)) return true;
  }
  return false;
}

// For the thread that sets it.
bool has_ended(const std::shared_ptr<Operation>& operation) {
  return operation->ended.load(std::memory_order_relaxed);
}

}  // namespace

// --- The way of an operation

Runner::Runner(transport::Endpoint& endpoint, Helm& helm)
    : endpoint_(endpoint), helm_(helm), pool_(endpoint) {
  ready_.reserve(kMostGroups * kStreamsPerGroup);
}

void Runner::enqueue(const std::shared_ptr<Operation>& operation) {
  LOCKSTEP_FAILPOINT("comm.operation.begun");
  Group& group = *operation->group;
  if (group.failure) return end(*operation, broken(*group.failure));
  if (aborted_) return end(*operation, broken(*aborted_));
  // Nobody knows of the call yet: if there is no memory for it, it is as if it had not been made.
  make_room();
  if (operation->point_to_point) {
    pool_.lend(*operation);
    return begin(operation);
  }
  Group::Stream& stream = group.streams[operation->stream];
  operation->sequence = stream.next_sequence;
  stream.queue.push_back(operation);
  try {
    if (stream.queue.size() == 1) pool_.lend(*operation);
  } catch (...) {
    stream.queue.pop_back();
    throw;
  }
  ++stream.next_sequence;
  if (stream.queue.size() == 1) begin(operation);
  begin_ready();
}

// For one more that is under way.
void Runner::make_room() {
  if (active_.size() == active_.capacity()) active_.reserve(2 * active_.size() + 8);
}

// A loop, not a recursion: an operation may end as soon as it begins, and so may thousands behind it.
void Runner::begin_ready() {
  while (!ready_.empty()) {
    const std::shared_ptr<Operation> next = std::move(ready_.back());
    ready_.pop_back();
    if (!has_ended(next)) begin(next);
  }
}

// Others count on it from here on: whatever goes wrong breaks the group.
void Runner::begin(const std::shared_ptr<Operation>& operation) {
  try {
    make_room();
    publish_notice(*operation, endpoint_);
    if (!operation->execution) pool_.lend(*operation);
    if (is_refused(operation)) return;
    advance(operation);
    if (!has_ended(operation)) active_.push_back(operation);
  } catch (const std::exception& error) {
    break_group(operation, not_begun(*operation, error.what()));
  }
}

// An operation that hears nothing of its peers looks at them before it begins, and so does the one after it.
bool Runner::is_refused(const std::shared_ptr<Operation>& operation) {
  if (operation->point_to_point || operation->group->size() == 1) return false;
  std::optional<Contract>& unheard = operation->group->streams[operation->stream].unheard;
  const bool hears = operation->script->hears();
  if (hears && !unheard) return false;
  try {
    hear_all(operation->ports);
    if (const std::exception_ptr error = diagnose_unheard(*operation, endpoint_)) {
      break_group(operation, error);
      return true;
    }
  } catch (const std::exception&) {
    break_group(operation, std::current_exception());
    return true;
  }
  unheard = hears ? std::nullopt : std::optional(operation->contract);
  return false;
}

bool Runner::advance() {
  bool moved = false;
  bool some_ended = false;
  for (const std::shared_ptr<Operation>& operation : active_) {
    if (!has_ended(operation) && advance(operation)) moved = operation->moved_since_look = true;
    some_ended |= has_ended(operation);
  }
  begin_ready();
  if (some_ended) forget_ended();
  return moved;
}

bool Runner::advance(const std::shared_ptr<Operation>& operation) {
  if (operation->mismatch) return look_at(operation);
  try {
    const std::uint64_t before = operation->execution->peer_bytes();
    const bool moved = operation->execution->advance();
    peer_bytes_ += operation->execution->peer_bytes() - before;
    if (operation->execution->done()) {
      LOCKSTEP_FAILPOINT("comm.operation.ended");
      show_unheard(*operation, endpoint_);
      end(*operation, nullptr);
    }
    return moved;
  } catch (const transport::EnvelopeMismatch& mismatch) {
    // Both sides say what they are doing, so that both can be named.
    operation->mismatch = mismatch;
    operation->deadline = Deadline::after(operation->timeout);
    show_notice(*operation, endpoint_);
    return look_at(operation);
  } catch (const std::exception&) {
    break_group(operation, std::current_exception());
  }
  return true;
}

void Runner::end(Operation& operation, std::exception_ptr error) {
  if (error) {
    pool_.take_back_failed(operation);
  } else {
    pool_.take_back(operation);
  }
  operation.error = std::move(error);
  operation.ended.store(true);
  if (operation.in_background) helm_.end_in_background();
  helm_.tell_ended();
  if (operation.point_to_point || operation.group->failure) return;
  auto& queue = operation.group->streams[operation.stream].queue;
  if (queue.empty() || queue.front().get() != &operation) return;
  queue.pop_front();
  if (!queue.empty()) ready_.push_back(queue.front());
}

void Runner::forget_ended() {
  std::erase_if(active_, has_ended);
}

// --- Failing

void Runner::look_at_stalled() {
  for (const std::shared_ptr<Operation>& operation : active_) {
    if (has_ended(operation)) continue;
    const bool moved = std::exchange(operation->moved_since_look, false);
    if (moved || has_time(*operation)) operation->deadline = Deadline::after(operation->timeout);
    if (moved) {
      show_notice(*operation, endpoint_);
    } else {
      beat(*operation, endpoint_);
      look_at(operation);
    }
  }
  forget_ended();
}

bool Runner::look_at(const std::shared_ptr<Operation>& operation) {
  std::exception_ptr error;
  try {
    error = diagnose(*operation, endpoint_);
    if (!error) return false;
    // What a peer sent before it left or failed counts. The evidence came first, so all of it is here by now.
    if (!operation->mismatch && operation->execution->advance()) {
      operation->moved_since_look = true;
      if (operation->execution->done()) end(*operation, nullptr);
      return true;
    }
  } catch (const transport::EnvelopeMismatch&) {
    // The diagnosis stands: it is older than this message.
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  break_group(operation, error);
  return true;
}

// Of the operations of a group that have not ended, `first` before all others. Some come twice.
template <typename Act>
void Runner::each_of_group(const std::shared_ptr<Operation>& first, Act act) {
  const auto act_on = [&](const std::shared_ptr<Operation>& operation) {
    if (!has_ended(operation)) act(operation);
  };
  act_on(first);
  for (const auto& other : active_) {
    if (other->group == first->group) act_on(other);
  }
  for (Group::Stream& stream : first->group->streams) {
    for (const auto& other : stream.queue) act_on(other);
  }
}

void Runner::tell_failure(transport::StreamId first_stream, const std::string& why) {
  try {
    endpoint_.fail(first_stream, why);
  } catch (const std::bad_alloc&) {
    // Peers find out when they hear nothing more.
  }
}

// Once for all groups that failed together, and after those who wait here have been let go.
void Runner::pass_on_failures() {
  try {
    endpoint_.pass_on_failures(Deadline::after(kTellTime));
  } catch (const std::bad_alloc&) {
    // The reports stay queued.
  }
}

void Runner::break_group(const std::shared_ptr<Operation>& operation, const std::exception_ptr& error) {
  end_group(operation, error);
  pass_on_failures();
}

void Runner::end_group(const std::shared_ptr<Operation>& operation, const std::exception_ptr& error) {
  Group& group = *operation->group;
  group.failure.emplace(message_of(error));
  tell_failure(group.first_stream, *group.failure);
  // All at first, for ranks that fail together wait for each other below; then with one patience for all.
  each_of_group(operation, [](const auto& other) {
    if (other->execution) other->execution->abandon();
  });
  const Deadline patience = Deadline::after(kPeerPatience);
  each_of_group(operation, [&](const auto& other) {
    if (other->execution) {
      other->execution->settle(patience);
      pool_.quarantine(*other);
    }
    end(*other, other == operation ? error : broken(*group.failure));
  });
  for (Group::Stream& stream : group.streams) stream.queue.clear();
}

void Runner::break_all(const std::exception_ptr& error) {
  end_all(error);
  pass_on_failures();
}

void Runner::end_all(const std::exception_ptr& error) {
  forget_ended();
  std::erase_if(ready_, has_ended);
  while (!active_.empty() || !ready_.empty()) {
    end_group(active_.empty() ? ready_.front() : active_.front(), error);
    forget_ended();
    std::erase_if(ready_, has_ended);
  }
}

// Of all groups: peers may wait in some where nothing is under way here.
void Runner::abort(const std::string& reason, const GroupNumbers& numbers) {
  if (aborted_) return;
  aborted_ = reason;
  for (std::size_t number = 0; number < kMostGroups; ++number) {
    if (numbers.state(number) == GroupNumbers::State::taken) tell_failure(first_stream_of(number), reason);
  }
  end_all(std::make_exception_ptr(Aborted(reason)));
  pass_on_failures();
}

bool Runner::is_in_use(Bytes memory) const {
  const auto is_used_by = [memory](const std::shared_ptr<Operation>& operation) {
    return !has_ended(operation) && uses(*operation, memory);
  };
  return std::ranges::any_of(active_, [&](const std::shared_ptr<Operation>& operation) {
    return is_used_by(operation) ||
           std::ranges::any_of(operation->group->streams, [&](const Group::Stream& stream) {
             return std::ranges::any_of(stream.queue, is_used_by);
           });
  });
}

void Runner::release(Bytes memory) {
  // Its owner goes while operations are under way, as when an exception unwinds: nobody else may get it.
  if (is_in_use(memory)) pool_.quarantine(memory);
  if (!pool_.is_quarantined(memory)) endpoint_.release(memory);
}

}  // namespace lockstep::comm
