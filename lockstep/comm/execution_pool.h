// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/operation.h"
#include "lockstep/comm/scratch_pool.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// The memory that operations run with: executions and scratch, both used again, and the record of what must
// not be used again because a peer may still write to it. Only lend() needs memory of the system. Not
// thread-safe.
class ExecutionPool {
 public:
  explicit ExecutionPool(transport::Endpoint& endpoint) : scratch_(endpoint) {}

  // Gives the operation an execution, ready to run from its beginning. Throws what Endpoint::allocate()
  // throws, or std::bad_alloc; then the operation has none.
  void lend(Operation& operation);

  // Takes the execution of an operation that ended well, and its scratch.
  void take_back(Operation& operation);

  // Takes the execution, if there is one, of an operation that failed. Its scratch is not used again.
  void take_back_failed(Operation& operation);

  // Notes all memory of an operation that failed while peers were allowed to write to it. For ever: a peer
  // that is frozen may write when it goes on.
  void quarantine(const Operation& operation);
  void quarantine(Bytes memory);

  // Whether a peer may still write to some of it.
  bool is_quarantined(Bytes memory) const;

 private:
  std::unique_ptr<Execution> take_idle();
  void put_back(std::unique_ptr<Execution> execution);
  void bind(const Operation& operation, Execution& execution);

  ScratchPool scratch_;
  std::vector<std::unique_ptr<Execution>> idle_;
  std::size_t lent_ = 0;  // executions that will come back
  std::vector<Bytes> quarantined_;
  bool all_is_quarantined_ = false;  // there was no memory to note what
};

}  // namespace lockstep::comm
