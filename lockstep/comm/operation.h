// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

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
  Contract contract;
  transport::NoticeHead notice{};
  Binding binding;
  std::vector<std::size_t> scratch_bytes;  // buffers that the engine adds to the binding
  std::chrono::nanoseconds timeout{};

  // --- Set by the engine.
  std::uint64_t sequence = 0;
  std::optional<Execution> execution;
  std::optional<Deadline> deadline;  // renewed whenever bytes move
  std::vector<Bytes> scratch;
  bool moved_since_look = true;
  std::atomic<bool> ended{false};
  std::exception_ptr error;
};

}  // namespace lockstep::comm
