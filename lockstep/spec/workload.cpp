// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/workload.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/world.h"
#include "lockstep/spec/key.h"
#include "lockstep/spec/refuse.h"
#include "lockstep/spec/write.h"

namespace lockstep::spec {
namespace {

// "32 or 64": the multiples of `unit` around `value`.
std::string nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return below == 0 ? fmt::format("{}", unit) : fmt::format("{} or {}", below, below + unit);
}

[[noreturn]] void refuse_batch(const Training& training, std::int64_t lanes, const Places& places) {
  const std::int64_t global = training.global_batch_size;
  std::string advice = nearest_multiples(global, lanes * training.micro_batch_size);
  if (global % lanes == 0) {
    std::int64_t micro = std::min(training.micro_batch_size, global / lanes);
    while (global / lanes % micro != 0) --micro;
    advice += fmt::format(", or training.micro_batch_size = {}", micro);
  }
  refuse(place_of(places, {"training.global_batch_size", "training.micro_batch_size", "parallelism.lanes"}),
         fmt::format(
             "training.global_batch_size = {} must be a multiple of {} lanes x training.micro_batch_size = "
             "{}; the nearest that work: {}",
             global, lanes, training.micro_batch_size, advice));
}

// What a run file could not say itself; it also keeps the tokens of a step inside 63 bits.
void require_countable(const Workload& workload, std::int64_t micro_batch_size, const Places& places) {
  const double most = find_key("training.global_batch_size")->accepted.bounds.most;
  if (static_cast<double>(workload.global_batch_size) <= most) return;
  refuse(place_of(places, {"training.micro_batch_size", "parallelism.lanes"}),
         fmt::format(
             "training.micro_batch_size = {} on {} lanes makes a step of {} sequences, but {} are the most; "
             "lower it or parallelism.lanes",
             micro_batch_size, workload.lanes, workload.global_batch_size, most));
}

Mesh mesh_of(const Parallelism& parallelism, std::int64_t world, const Places& places) {
  return at_place_of(places, {"parallelism.data", "parallelism.tensor", "parallelism.pipeline"},
                     [&] { return Mesh(static_cast<int>(world), mesh_shape(parallelism)); });
}

// `workers` data-parallel ones.
void require_weights(const Parallelism& parallelism, std::int64_t workers, std::int64_t world,
                     const Places& places) {
  const auto weights = std::ssize(parallelism.lane_weights);
  if (weights == 0 || weights == workers) return;
  const std::int64_t fitting = weights * (world / workers);
  const bool can_be_started = parallelism.data == -1 && fitting <= kMaxWorld;
  refuse(place_of(places, {"parallelism.lane_weights"}),
         fmt::format("parallelism.lane_weights has {} for {}; give {}, or none for equal shares{}",
                     counted(weights, "number"), counted(workers, "data-parallel worker"), workers,
                     can_be_started ? fmt::format(", or start {}", counted(fitting, "worker")) : ""));
}

// Which say how the stages of a pipeline are made.
std::vector<const Key*> stage_keys() {
  std::vector<const Key*> keys;
  for (const Key& key : all_keys()) {
    const auto& conditions = key.accepted.only_with;
    const bool needs_stages = std::ranges::any_of(
        conditions, [](const Condition& condition) { return condition.key == "parallelism.pipeline"; });
    if (needs_stages) keys.push_back(&key);
  }
  return keys;
}

}  // namespace

MeshShape mesh_shape(const Parallelism& parallelism) {
  const bool others_take_the_rest = parallelism.tensor == -1 || parallelism.pipeline == -1;
  const std::int64_t data = parallelism.data == -1 && others_take_the_rest ? 1 : parallelism.data;
  return {.pipeline = static_cast<int>(parallelism.pipeline),
          .data = static_cast<int>(data),
          .tensor = static_cast<int>(parallelism.tensor)};
}

std::int64_t tensor_lanes(const Parallelism& parallelism) {
  return parallelism.tensor_lanes == 0 ? parallelism.tensor : parallelism.tensor_lanes;
}

std::int64_t workers_of_replica(const Parallelism& parallelism, std::int64_t world) {
  if (parallelism.data != -1 || !parallelism.lane_weights.empty()) return world;
  return parallelism.tensor * parallelism.pipeline;
}

std::int64_t lanes_for(const Parallelism& parallelism, std::int64_t degree, const Places& places) {
  const auto least = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(degree)));
  if (parallelism.lanes == 0) return least;
  if (parallelism.lanes < degree) {
    refuse(
        place_of(places, {"parallelism.lanes"}),
        fmt::format("parallelism.lanes = {} leaves some of the {} data-parallel workers without work; set it "
                    "to {}, or to a larger power of two",
                    parallelism.lanes, degree, least));
  }
  return parallelism.lanes;
}

std::int64_t micro_batches_per_lane(const Training& training, std::int64_t lanes, const Places& places) {
  if (training.global_batch_size == 0) return 1;
  const std::int64_t unit = lanes * training.micro_batch_size;
  if (training.global_batch_size % unit != 0) refuse_batch(training, lanes, places);
  return training.global_batch_size / unit;
}

std::optional<std::int64_t> recompute_stride(const Parallelism& parallelism) {
  const std::string& text = parallelism.recompute;
  if (text == "none") return 0;
  if (text == "all") return 1;
  std::int64_t stride = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), stride);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && stride >= 1 && stride <= 10000 ? std::optional(stride) : std::nullopt;
}

bool saves_on_the_way(const RunSpec& run) {
  const Checkpoint& checkpoint = run.checkpoint;
  const bool by_steps = checkpoint.interval != 0 && checkpoint.interval < run.training.steps;
  return checkpoint.enabled && (by_steps || checkpoint.interval_seconds > 0);
}

std::int64_t targets_per_sample(const RunSpec& run) {
  return run.model.name == ModelFamily::mlp ? 1 : run.training.seq_len;
}

Workload workload_of(const RunSpec& run, std::int64_t world, const Places& places) {
  Workload workload;
  workload.data_parallel = mesh_of(run.parallelism, world, places).size(Axis::data);
  workload.lanes = lanes_for(run.parallelism, workload.data_parallel, places);
  workload.micro_batches_per_lane = micro_batches_per_lane(run.training, workload.lanes, places);
  workload.global_batch_size =
      workload.lanes * workload.micro_batches_per_lane * run.training.micro_batch_size;
  require_countable(workload, run.training.micro_batch_size, places);
  workload.tokens_per_step = workload.global_batch_size * targets_per_sample(run);
  require_weights(run.parallelism, workload.data_parallel, world, places);
  return workload;
}

RunSpec settled(RunSpec run, std::int64_t world, const Places& places) {
  const Mesh mesh = mesh_of(run.parallelism, world, places);
  run.parallelism.tensor = mesh.size(Axis::tensor);
  run.parallelism.pipeline = mesh.size(Axis::pipeline);
  // A run may leave the number of stages to the workers, and these may come to one.
  if (run.parallelism.pipeline == 1) {
    for (const Key* key : stage_keys()) key->set(run, default_of(*key));
  }
  check_run(run, places);
  const Workload workload = workload_of(run, world, places);
  run.parallelism.lanes = workload.lanes;
  run.parallelism.tensor_lanes = tensor_lanes(run.parallelism);
  run.training.global_batch_size = workload.global_batch_size;
  return run;
}

std::vector<std::string> flags_without_pipeline() {
  std::vector<std::string> flags = {"--parallelism.pipeline=1"};
  for (const Key* key : stage_keys()) {
    flags.push_back(fmt::format("--{}={}", key->full_name(), text_of(*key, default_of(*key))));
  }
  return flags;
}

RunSpec plain_run(RunSpec run) {
  run.parallelism = {
      .zero_stage = 0, .lanes = run.parallelism.lanes, .tensor_lanes = run.parallelism.tensor_lanes};
  run.zero = {};
  return run;
}

RunSpec common_to_workers(RunSpec run) {
  const Elastic otherwise;
  run.job = {};
  run.metrics = {};
  run.training.threads = 0;
  run.elastic.max_workers = otherwise.max_workers;
  run.elastic.beat_timeout_seconds = otherwise.beat_timeout_seconds;
  run.elastic.stall_timeout_seconds = otherwise.stall_timeout_seconds;
  run.elastic.join_timeout_seconds = otherwise.join_timeout_seconds;
  run.elastic.grace_seconds = otherwise.grace_seconds;
  run.elastic.max_restarts = otherwise.max_restarts;
  run.elastic.window_seconds = otherwise.window_seconds;
  return run;
}

}  // namespace lockstep::spec
