// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/comm/contract.h"
#include "lockstep/comm/execution.h"

namespace lockstep::comm {

class Group;

// One call of a collective or of send/recv, from the call to its end. The engine runs it; only `ended` may be
// read from other threads, and `error` once it is true.
struct Operation {
  std::shared_ptr<Group> group;  // shared: a communicator may go while its operation runs
  std::uint32_t stream = 0;      // of the group
  bool point_to_point = false;
  bool in_background = false;        // progresses although nobody waits
  std::atomic<bool> awaited{false};  // somebody has begun to wait; any thread may set it
  Contract contract;
  transport::NoticeHead notice{};
  std::shared_ptr<const Script> script;
  std::span<Port> ports;     // those of its stream
  std::uint64_t digest = 0;  // of the contract
  kernels::Combination arithmetic;
  std::vector<std::byte*> buffers;  // the caller's
  std::chrono::nanoseconds timeout{};

  // --- Set by the engine.
  std::uint64_t sequence = 0;
  std::unique_ptr<Execution> execution;  // from its beginning to its end
  std::optional<Deadline> deadline;      // set at the first look, renewed whenever bytes move
  bool moved_since_look = true;
  Pulse pulse;  // ours, while stalled
  // What was last heard of the others while stalled.
  struct Heard {
    Pulse pulse;
    Clock::time_point changed{};
  };
  std::vector<Heard> heard;           // in this collective, by rank of the group
  std::vector<Heard> heard_in_world;  // whatever they wait in, by rank of the world
  std::optional<transport::EnvelopeMismatch>
      mismatch;  // with a message that a peer offers; then it does not move
  std::atomic<bool> ended{false};
  std::exception_ptr error;
};

}  // namespace lockstep::comm
