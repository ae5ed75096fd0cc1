// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <memory_resource>
#include <optional>
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
  Operation() : memory(inline_memory.data(), inline_memory.size()) {}

  // Room for the vectors of a small program, so that a small operation costs one allocation.
  alignas(std::max_align_t) std::array<std::byte, 1536> inline_memory;
  std::pmr::monotonic_buffer_resource memory;

  std::shared_ptr<Group> group;  // shared: a communicator may go while its operation runs
  std::uint32_t stream = 0;      // of the group
  bool point_to_point = false;
  bool in_background = false;  // progresses although nobody waits
  Contract contract;
  transport::NoticeHead notice{};
  Binding binding;
  std::pmr::vector<std::byte*> buffers{&memory};         // the caller's, then scratch
  std::pmr::vector<std::size_t> scratch_bytes{&memory};  // what the engine adds to them
  std::chrono::nanoseconds timeout{};

  // --- Set by the engine.
  std::uint64_t sequence = 0;
  std::optional<Execution> execution;
  std::optional<Deadline> deadline;  // renewed whenever bytes move
  std::pmr::vector<Bytes> scratch{&memory};
  bool moved_since_look = true;
  std::optional<transport::EnvelopeMismatch>
      mismatch;  // with a message that a peer offers; then it does not move
  std::atomic<bool> ended{false};
  std::exception_ptr error;
};

}  // namespace lockstep::comm
