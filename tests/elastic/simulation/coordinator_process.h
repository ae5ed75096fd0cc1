// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>

#include "lockstep/elastic/coordinator.h"
#include "lockstep/elastic/decision_log.h"

#include "tests/elastic/simulation/world.h"

namespace lockstep::elastic::simulation {

// A process that runs a coordinator as the real one does: what it says is done in order, and nothing is done
// before what was to be recorded first is on the disk.
class CoordinatorProcess : public Process {
 public:
  CoordinatorProcess(World& world, int incarnation);

  void start() { arm(); }

  void receive(Connection& connection, const std::vector<std::byte>& message) override;
  void closed(Connection& connection) override;

 private:
  struct Bound {
    Connection* connection = nullptr;
    std::uint64_t attempt = 0;  // of the Join that came over it
  };

  bool binds(const FromMember& message, Connection& connection);
  void hand_in(const FromMember& message);
  Outputs forge_votes(const Vote& vote);
  // Calls the coordinator, and looks at what was decided before and after.
  template <typename Call>
  void call(Call&& ask);
  void arm();
  void work();
  void perform_output(const Send& send);
  void perform_output(const Fence& fence);
  void record(const Record& record);

  World& world_;
  int incarnation_;
  DecisionLog log_;
  Coordinator coordinator_;
  std::map<MemberId, Bound> bound_;
  std::deque<Output> outputs_;  // to be done
  bool is_recording_ = false;
  std::uint64_t armed_ = 0;
};

}  // namespace lockstep::elastic::simulation
