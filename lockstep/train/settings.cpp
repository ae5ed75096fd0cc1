// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/settings.h"

#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/kernels/compute/arithmetic.h"
#include "lockstep/spec/write.h"
#include "lockstep/train/model_of.h"

namespace lockstep::train {
namespace {

// "8 workers: data 2 x tensor 2 x pipeline 2, zero stage 1"
std::string layout_in_words(const spec::RunSpec& run, int world) {
  const spec::Parallelism& parallelism = run.parallelism;
  return fmt::format("{}: data {} x tensor {} x pipeline {}, zero stage {}", counted(world, "worker"),
                     spec::workload_of(run, world).data_parallel, parallelism.tensor, parallelism.pipeline,
                     parallelism.zero_stage);
}

}  // namespace

Feed::Options feed_options(const spec::RunSpec& run, const spec::Workload& workload) {
  return {.corpora = run.data.train,
          .sharding = run.data.sharding,
          .dense = run.model.name == spec::ModelFamily::mlp,
          .vocabulary = run.model.vocab_size,
          .length = run.training.seq_len,
          .seed = static_cast<std::uint64_t>(run.training.seed),
          .shape = {.lanes = static_cast<std::uint64_t>(workload.lanes),
                    .micro_batches = static_cast<std::uint64_t>(workload.micro_batches_per_lane),
                    .rows = static_cast<std::uint64_t>(run.training.micro_batch_size)}};
}

SumOptions sum_options(const spec::Comm& comm) {
  SumOptions options = {.exact = comm.exact};
  if (comm.all_reduce != "auto") options.algorithm = schedule::parse_algorithm(comm.all_reduce);
  return options;
}

Weights::Options weight_options(const spec::RunSpec& run) {
  Weights::Options options = {.dtype = run.training.dtype,
                              .moments = run.optimizer.name == spec::OptimizerKind::adamw ? 2 : 1};
  if (run.zero.offload == spec::Offload::disk) {
    options.offload_folder = run.zero.offload_folder.empty() ? run.job.dump_folder : run.zero.offload_folder;
  }
  return options;
}

OptimizerStep optimizer_step(const spec::Optimizer& optimizer, double rate, std::int64_t step) {
  const auto narrow = [](double value) { return static_cast<float>(value); };
  if (optimizer.name == spec::OptimizerKind::sgd) {
    return kernels::Sgd{.learning_rate = narrow(rate),
                        .momentum = narrow(optimizer.momentum),
                        .weight_decay = narrow(optimizer.weight_decay)};
  }
  return kernels::AdamW{.learning_rate = narrow(rate),
                        .beta1 = narrow(optimizer.beta1),
                        .beta2 = narrow(optimizer.beta2),
                        .epsilon = narrow(optimizer.eps),
                        .weight_decay = narrow(optimizer.weight_decay),
                        .step = static_cast<std::uint64_t>(step)};
}

std::vector<std::int64_t> hidden_sizes(const spec::RunSpec& run, const nn::LaneTeam* team) {
  if (run.model.name == spec::ModelFamily::mlp) return {run.training.micro_batch_size, run.model.width};
  const nn::Lanes lanes = {team, run.training.micro_batch_size * run.training.seq_len};
  if (lanes.divide_tokens()) return {lanes.held().count, run.model.width};
  return {run.training.micro_batch_size, run.training.seq_len, run.model.width};
}

std::unique_ptr<const TensorLanes> tensor_lanes(const spec::RunSpec& run, const model::Model& model,
                                                const comm::Communicator& group) {
  const auto lanes = static_cast<int>(spec::tensor_lanes(run.parallelism));
  if (lanes == 1) return nullptr;
  return std::make_unique<const TensorLanes>(
      model, division_of(run.model), group,
      TensorLanes::Options{.lanes = lanes, .divides_tokens = run.parallelism.sequence_parallel});
}

std::filesystem::path trace_folder(const spec::RunSpec& run) {
  return std::filesystem::path(run.job.dump_folder) / "trace";
}

checkpoint::Manifest manifest_of(const spec::RunSpec& run, int world) {
  const spec::RunSpec resolved = spec::settled(run, world);
  checkpoint::Manifest manifest;
  manifest.lanes = resolved.parallelism.lanes;
  manifest.tensor_lanes = resolved.parallelism.tensor_lanes;
  manifest.configuration = spec::to_toml(resolved);
  manifest.written_by = layout_in_words(resolved, world);
  manifest.arithmetic = to_text(kernels::arithmetic_of(run.training.dtype));
  return manifest;
}

}  // namespace lockstep::train
