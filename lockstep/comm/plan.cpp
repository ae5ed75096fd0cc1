// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/plan.h"

#include <functional>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/collective/generate.h"

namespace lockstep::comm {
namespace {

// Up to this world every rank proves the programs of all ranks before it runs its own: once for each spec, in
// 1 to 50 ms of one core for 128 ranks (all_reduce by direct 10, all_to_all round a ring 43), in a tenth for
// 64; for lanes that move in parts, so long for each part. It grows with the square to the cube of the world.
// Beyond, programs run that were not proved themselves: their generators were, by the sweep in tests/schedule
// (docs/algorithms.md says for which worlds).
constexpr int kLargestProvedWorld = 128;

// Callers with ever new sizes must not fill the memory; those with a few sizes never reach this. A large
// buffer that moves in parts has a long program, so it is moves that are counted, at some 300 bytes each.
constexpr std::size_t kMostMoves = std::size_t{1} << 18;

void prove(const schedule::CollectiveSpec& spec) {
  std::vector<schedule::Program> programs;
  programs.reserve(static_cast<std::size_t>(spec.world));
  for (Rank rank = 0; rank < spec.world; ++rank) programs.push_back(schedule::generate(spec, rank));
  const schedule::CheckResult result = schedule::check(spec, programs);
  LOCKSTEP_CHECK(!result.violation,
                 fmt::format("{} by {} over {} ranks: {}", name_of(spec.op), name_of(spec.algorithm),
                             spec.world, result.violation->to_string()));
}

std::size_t contributions(const schedule::CollectiveSpec& spec) {
  if (spec.pieces.empty()) return static_cast<std::size_t>(spec.world);
  std::size_t lanes = 0;
  for (const auto& pieces : spec.pieces) {
    for (const Subtree& piece : pieces) lanes += static_cast<std::size_t>(piece.count);
  }
  return lanes;
}

// Otherwise only the outer part would run, under a name that promises both.
void require_hosts_in_order(const Topology& topology) {
  if (!topology.is_scattered()) return;
  throw UsageError(
      "hierarchical needs the ranks of a host to follow one another, but here others stand between them: "
      "number the ranks host by host, split the group with the host as the key, or name another algorithm");
}

}  // namespace

Planner::Planner(Rank rank, Topology topology, LinkModel model)
    : rank_(rank), topology_(std::move(topology)), model_(model) {}

std::shared_ptr<const Plan> Planner::plan(const PlanRequest& request) {
  const std::lock_guard lock(mutex_);
  if (const auto known = plans_.find(request); known != plans_.end()) return known->second;
  std::shared_ptr<const Plan> made = make(request);
  const std::size_t moves = made->script->moves() + 1;
  if (moves_ + moves > kMostMoves) {
    plans_.clear();
    moves_ = 0;
  }
  moves_ += moves;
  return plans_.emplace(request, std::move(made)).first->second;
}

std::shared_ptr<const Plan> Planner::make(const PlanRequest& request) const {
  schedule::CollectiveSpec spec;
  spec.op = request.op;
  spec.world = topology_.world();
  spec.count = request.count;
  spec.root = request.root;
  spec.pieces = request.pieces;
  if (request.algorithm) {
    spec.algorithm = *request.algorithm;
    if (spec.algorithm == schedule::Algorithm::hierarchical) require_hosts_in_order(topology_);
    spec.inner = request.inner;
    spec.outer = request.outer;
    if (request.grid) {
      spec.grid = *request.grid;
      validate(spec);
    }
    spec = complete_spec(std::move(spec), request.dtype, topology_, model_);
  } else {
    spec = candidates(spec, request.dtype, topology_, model_, request.exact).front().spec;
  }
  if (request.exact && reduces(spec.op) && !schedule::is_exact(spec)) {
    throw UsageError(fmt::format(
        "{} cannot give exact results here: its order of addition depends on the layout; set exact to false "
        "or use direct, halving_doubling or one_shot",
        to_string({.algorithm = spec.algorithm, .inner = spec.inner, .outer = spec.outer})));
  }
  auto plan = std::make_shared<Plan>();
  plan->script = std::make_shared<const Script>(schedule::generate(spec, rank_));
  if (spec.world <= kLargestProvedWorld) prove(spec);
  plan->contract = {.op = spec.op,
                    .point_to_point = false,
                    .dtype = spec.op == schedule::Op::barrier ? DType::fp32 : request.dtype,
                    .reduce = reduces(spec.op) ? request.reduce : kernels::ReduceOp::sum,
                    .algorithm = spec.algorithm,
                    .inner = spec.inner,
                    .outer = spec.outer,
                    .root = has_root(spec.op) ? spec.root : 0,
                    .count = spec.count,
                    .shape_digest = shape_digest_of(spec)};
  plan->digest = digest_of(plan->contract);
  plan->notice = to_notice(plan->contract);
  plan->divide_by = request.reduce == kernels::ReduceOp::average ? contributions(spec) : 1;
  plan->spec = std::move(spec);
  return plan;
}

std::size_t Planner::Hash::operator()(const PlanRequest& request) const {
  // Lanes are left out: a process uses few ownerships, and equality tells them apart.
  const std::size_t kind =
      static_cast<std::size_t>(request.op) | static_cast<std::size_t>(request.dtype) << 4 |
      static_cast<std::size_t>(request.reduce) << 8 | static_cast<std::size_t>(request.root) << 16;
  return std::hash<std::size_t>{}(request.count * 0x9e3779b97f4a7c15ULL ^ kind);
}

}  // namespace lockstep::comm
