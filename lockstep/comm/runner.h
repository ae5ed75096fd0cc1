// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/execution_pool.h"
#include "lockstep/comm/group_numbers.h"
#include "lockstep/comm/helm.h"
#include "lockstep/comm/operation.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Takes the operations of a process from their call to their end, and a group that fails with all its
// operations to theirs. No call blocks for longer than it takes to break a group. Only whoever has the helm
// may call.
class Runner {
 public:
  // Both outlive this.
  Runner(transport::Endpoint& endpoint, Helm& helm);

  // Puts the operation on its stream; it begins, and may end, at once if it is the first there. If it throws,
  // be it for want of memory, it is as if the call had not been made.
  void enqueue(const std::shared_ptr<Operation>& operation);

  // Does what can be done now for all operations; true if anything moved.
  bool advance();

  // Execution::peer_bytes() of all operations so far.
  std::uint64_t peer_bytes() const { return peer_bytes_; }

  // For every operation that has not moved since the last call: lets the others know that we live, and ends
  // it if there is no hope left.
  void look_at_stalled();

  // The group of the operation is unusable from now on, here and at its other members. The operation ends
  // with the error, if it has not ended, and all others of the group with what it says. Works without memory,
  // but then peers may have to find out by themselves.
  void break_group(const std::shared_ptr<Operation>& operation, const std::exception_ptr& error);
  // The same for all operations.
  void break_all(const std::exception_ptr& error);

  // The same for all groups, which have these numbers, and for operations that come later. Only the first
  // time.
  void abort(const std::string& reason, const GroupNumbers& numbers);

  // Gives registered memory back to the endpoint. What a failed operation had granted, or one under way has,
  // is not given out again, because a peer that is frozen may write into it when it goes on; it goes with the
  // endpoint.
  void release(Bytes memory);

 private:
  void begin_ready();
  void make_room();
  void begin(const std::shared_ptr<Operation>& operation);
  bool is_refused(const std::shared_ptr<Operation>& operation);
  bool advance(const std::shared_ptr<Operation>& operation);
  bool look_at(const std::shared_ptr<Operation>& operation);
  bool is_in_use(Bytes memory) const;
  template <typename Act>
  void each_of_group(const std::shared_ptr<Operation>& first, Act act);
  void tell_failure(transport::StreamId first_stream, const std::string& why);
  void pass_on_failures();
  // As break_group() and break_all(), but the reports to peers may have to wait.
  void end_group(const std::shared_ptr<Operation>& operation, const std::exception_ptr& error);
  void end_all(const std::exception_ptr& error);
  void end(Operation& operation, std::exception_ptr error);
  void forget_ended();

  transport::Endpoint& endpoint_;
  Helm& helm_;
  ExecutionPool pool_;
  std::uint64_t peer_bytes_ = 0;
  std::optional<std::string> aborted_;              // why no group is usable any more
  std::vector<std::shared_ptr<Operation>> active_;  // begun; those that have ended are forgotten later
  std::vector<std::shared_ptr<Operation>> ready_;   // first of their streams, not yet begun
};

}  // namespace lockstep::comm
