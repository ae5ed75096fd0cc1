// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lockstep/comm/contract.h"
#include "lockstep/comm/script.h"
#include "lockstep/comm/select.h"
#include "lockstep/schedule/collective/collective.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// A collective as this rank will run it: program (proved up to 128 ranks), contract, and what is derived from
// them.
struct Plan {
  schedule::CollectiveSpec spec;
  Contract contract;
  std::uint64_t digest = 0;
  transport::NoticeHead notice{};
  std::shared_ptr<const Script> script;  // shared with executions
  std::size_t divide_by = 1;
};

// What a caller asks for.
struct PlanRequest {
  schedule::Op op = schedule::Op::barrier;
  DType dtype = DType::fp32;
  kernels::ReduceOp reduce = kernels::ReduceOp::sum;
  std::size_t count = 0;
  Rank root = 0;
  std::optional<schedule::Algorithm> algorithm = {};        // none: the selector's choice
  schedule::Algorithm inner = schedule::Algorithm::direct;  // of hierarchical
  schedule::Algorithm outer = schedule::Algorithm::direct;
  std::optional<schedule::GridShape> grid = {};  // of mesh; none: the squarest torus
  bool exact = true;
  std::vector<std::vector<Subtree>> pieces = {};  // lane tree; empty: no lanes

  bool operator==(const PlanRequest&) const = default;
};

// Makes plans and keeps them: equal requests are answered from memory. Thread-safe.
class Planner {
 public:
  Planner(Rank rank, Topology topology, LinkModel model);

  // UsageError when the request makes no sense. InternalError when the checker refuses the generated
  // programs.
  std::shared_ptr<const Plan> plan(const PlanRequest& request);

 private:
  struct Hash {
    std::size_t operator()(const PlanRequest& request) const;
  };

  std::shared_ptr<const Plan> make(const PlanRequest& request) const;

  Rank rank_;
  Topology topology_;
  LinkModel model_;
  std::mutex mutex_;
  std::size_t moves_ = 0;  // of all plans
  std::unordered_map<PlanRequest, std::shared_ptr<const Plan>, Hash> plans_;
};

}  // namespace lockstep::comm
