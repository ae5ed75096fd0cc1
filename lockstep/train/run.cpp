// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/run.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/mesh/host_grid.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/spec/lr_schedule.h"
#include "lockstep/spec/workload.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/async_file.h"
#include "lockstep/train/feed.h"
#include "lockstep/train/groups.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/loss_scale.h"
#include "lockstep/train/memory.h"
#include "lockstep/train/model_folder.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/rebalance.h"
#include "lockstep/train/step_runner.h"
#include "lockstep/train/step_trace.h"
#include "lockstep/train/tensor_lanes.h"
#include "lockstep/train/validation.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {
namespace {

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

// Sums and gathers go through the peers' gradients and weights; a step later is soon enough for the next
// time.
constexpr std::size_t kPeerMemory = std::size_t{8} << 20;

bool is_due(std::int64_t every, std::int64_t step) {
  return every > 0 && step % every == 0;
}

SumOptions sum_options(const spec::Comm& comm) {
  SumOptions options = {.exact = comm.exact};
  if (comm.all_reduce != "auto") options.algorithm = schedule::parse_algorithm(comm.all_reduce);
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

Weights::Options weight_options(const spec::RunSpec& run) {
  Weights::Options options = {.dtype = run.training.dtype,
                              .seed = static_cast<std::uint64_t>(run.training.seed),
                              .moments = run.optimizer.name == spec::OptimizerKind::adamw ? 2 : 1};
  if (run.zero.offload == spec::Offload::disk) {
    options.offload_folder = run.zero.offload_folder.empty() ? run.job.dump_folder : run.zero.offload_folder;
  }
  return options;
}

// What stages send each other for one micro-batch.
std::vector<std::int64_t> hidden_sizes(const spec::RunSpec& run, const nn::LaneTeam* team) {
  if (run.model.name == spec::ModelFamily::mlp) return {run.training.micro_batch_size, run.model.width};
  const nn::Lanes lanes = {team, run.training.micro_batch_size * run.training.seq_len};
  if (lanes.divide_tokens()) return {lanes.held().count, run.model.width};
  return {run.training.micro_batch_size, run.training.seq_len, run.model.width};
}

// The layers of this rank and those that it shares them with; none when they have one lane.
std::unique_ptr<const TensorLanes> tensor_lanes(const spec::RunSpec& run, const model::Model& model,
                                                const comm::Communicator& group) {
  const auto lanes = static_cast<int>(spec::tensor_lanes(run.parallelism));
  if (lanes == 1) return nullptr;
  return std::make_unique<const TensorLanes>(
      model, division_of(run.model), group,
      TensorLanes::Options{.lanes = lanes, .divides_tokens = run.parallelism.sequence_parallel});
}

// What a run reads from files that may be wrong on one host only.
struct Sources {
  plan::PipelinePlan pipeline;
  std::optional<Feed> feed;
  std::optional<Feed> validation;  // none: the run does not validate
  std::optional<checkpoint::ModelFolder> first_values;
};

Sources open_sources(const spec::RunSpec& run, const comm::Communicator& world) {
  Feed::Options options;
  Sources sources;
  together(world, [&] {
    options = feed_options(run, spec::workload_of(run, world.size()));
    require_division(run);
    const GradientSum trial(world, plan::first_ownership(run, world.size()), false, sum_options(run.comm));
    if (run.parallelism.zero_scope == spec::ZeroScope::host) {
      data_grid(plan::mesh_of(run, world.size()), world.hosts());
    }
    sources.pipeline = plan::read_pipeline_plan(run, world.size());
    if (const std::string folder = weight_options(run).offload_folder; !folder.empty()) {
      const AsyncFile try_out(folder, 1);
    }
    sources.feed.emplace(options);
    if (run.validation.freq > 0 && !run.data.validation.empty()) {
      sources.validation.emplace(validation_feed(run));
    }
    if (run.checkpoint.initial_load_path.empty()) return;
    sources.first_values.emplace(run.checkpoint.initial_load_path);
    require_same_model(*sources.first_values, run.model);
  });
  require_same_run(run, world);
  require_same_schedule(sources.pipeline, world);
  require_same_data(*sources.feed, options.shape, run.training.steps, world);
  return sources;
}

class Run {
 public:
  Run(const spec::RunSpec& run, const comm::Communicator& world, const Sources& sources)
      : run_(run),
        world_(world),
        workload_(spec::workload_of(run, world.size())),
        feed_(*sources.feed),
        model_(model_of(run.model)),
        groups_(make_groups(world, plan::mesh_of(run, world.size()), run.parallelism.zero_scope)),
        tensor_(tensor_lanes(run, model_, groups_.tensor)),
        holding_(holding_of(
            model_, sources.pipeline, groups_,
            {.tensor = tensor_.get(), .zero_stage = static_cast<int>(run.parallelism.zero_stage)})),
        pool_(world),
        weights_(holding_, pool_, weight_options(run)),
        runner_(model_, holding_, pool_, weights_,
                {.lanes = plan::first_ownership(run, world.size()),
                 .micro_batches = static_cast<int>(workload_.micro_batches_per_lane),
                 .recompute_every = static_cast<int>(spec::recompute_stride(run.parallelism).value_or(0)),
                 .sum = sum_options(run.comm),
                 .pipeline = sources.pipeline,
                 .hidden = hidden_sizes(run, holding_.team())}),
        loss_scale_(run.training) {
    world.limit_peer_memory(kPeerMemory);
    if (sources.first_values) load(*sources.first_values);
    if (run.metrics.enable_trace) {
      trace_.emplace(std::filesystem::path(run.job.dump_folder) / "trace", world);
      observe_ = std::bind_front(&StepTrace::add, &*trace_);
    }
    if (sources.validation) {
      validation_.emplace(run, *sources.validation, model_, holding_, sources.pipeline, weights_);
    }
  }

  RunSummary train(const RunHooks& hooks) {
    for (std::int64_t step = 1; step <= run_.training.steps && !summary_.stopped; ++step) {
      StepReport report = train_step(step);
      if (is_due(run_.parallelism.rebalance_freq, step)) report.lanes = rebalance();
      summary_.steps = step;
      summary_.loss = report.loss;
      if (hooks.after_step) hooks.after_step(report);
      if (hooks.see_state) hooks.see_state({holding_.whole, weights_, runner_});
      if (bad_in_a_row_ >= run_.training.max_bad_steps) refuse_to_go_on(report);
      const bool is_last = step == run_.training.steps;
      if (!is_last && is_due(run_.checkpoint.interval, step)) tell_trained(hooks);
      summary_.stopped = !is_last && somebody_wants_to_stop(hooks);
    }
    if (trace_) trace_->write();
    tell_trained(hooks);
    return summary_;
  }

 private:
  void tell_trained(const RunHooks& hooks) const {
    if (hooks.trained) hooks.trained(holding_.whole, weights_.gather_working(world_.rank() == 0));
  }

  void load(const checkpoint::ModelFolder& folder) {
    Digest digest;
    together(world_, [&] {
      load_values(folder, run_.model, holding_.whole, holding_.layout,
                  [&](std::size_t parameter, std::span<const float> values) {
                    load(parameter, values);
                    const auto bytes = std::as_bytes(values);
                    digest.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
                  });
    });
    require_same_first_values(digest, holding_.groups.pipeline.rank(), run_.checkpoint.initial_load_path,
                              world_);
  }

  // Into each lane that has something of it.
  void load(std::size_t in_whole, std::span<const float> values) {
    const std::string& name = holding_.whole.specs()[in_whole].name;
    const at::Tensor whole =
        at::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < holding_.layout.specs().size(); ++i) {
      if (holding_.layout.specs()[i].name != name) continue;
      const at::Tensor part = at::empty({holding_.layout.places()[i].count}, at::kFloat);
      parallel::take_part(holding_.shard(i), whole, part);
      weights_.assign(i, 0, nn::floats_of(part));
    }
  }

  StepReport train_step(std::int64_t step) {
    const auto began = Clock::now();
    StepReport report = {
        .step = step,
        .learning_rate = spec::lr_at(step - 1, run_.lr_scheduler, run_.optimizer, run_.training.steps),
        .loss_scale = loss_scale_.value(),
        .tokens = workload_.tokens_per_step};
    const auto tokens = static_cast<double>(workload_.tokens_per_step);
    const std::uint64_t position = static_cast<std::uint64_t>(step - 1) * feed_.samples_per_step();
    const StepResult result = runner_.run(
        {.batch = [&](int lane, int micro_batch) { return feed_.batch(position, lane, micro_batch); },
         .loss_scale = static_cast<float>(report.loss_scale / tokens),
         .gradient_scale = static_cast<float>(1.0 / report.loss_scale),
         .max_norm = run_.training.max_norm,
         .optimizer = optimizer_step(run_.optimizer, report.learning_rate, step - summary_.bad_steps),
         .observe = observe_});
    compute_seconds_ += result.compute_seconds;
    report.loss = result.loss_sum / tokens;
    report.gradient_norm = result.gradient_norm;
    report.updated = result.updated;
    if (result.not_finite) report.not_finite = holding_.whole.specs()[*result.not_finite].name;
    report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    record(report);
    if (validation_ && (is_due(run_.validation.freq, step) || step == run_.training.steps)) {
      report.validation_loss = validation_->loss();
    }
    return report;
  }

  // Who owns how many lanes from now on; empty when none have moved.
  std::vector<int> rebalance() {
    std::vector<double> seconds(static_cast<std::size_t>(holding_.groups.data.size()), 0.0);
    seconds[static_cast<std::size_t>(holding_.groups.data.rank())] = std::exchange(compute_seconds_, 0.0);
    world_.all_reduce(std::as_writable_bytes(std::span(seconds)), {.dtype = DType::fp64});
    const LaneOwnership lanes = rebalanced(runner_.lanes(), seconds);
    std::vector<int> counts;
    if (lanes == runner_.lanes()) return counts;
    runner_.assign(lanes);
    for (Rank rank = 0; rank < lanes.world(); ++rank) counts.push_back(lanes.count_of(rank));
    return counts;
  }

  void record(const StepReport& report) {
    loss_scale_.record(report.updated);
    bad_in_a_row_ = report.updated ? 0 : bad_in_a_row_ + 1;
    if (!report.updated) ++summary_.bad_steps;
  }

  [[noreturn]] void refuse_to_go_on(const StepReport& report) const {
    refuse_together(
        world_,
        fmt::format(
            "step {}: the gradients of {} steps in a row were not finite, this time first that of {}; "
            "lower optimizer.lr, raise lr_scheduler.warmup_steps, or use training.dtype = \"bf16\"",
            report.step, bad_in_a_row_, report.not_finite));
  }

  bool somebody_wants_to_stop(const RunHooks& hooks) const {
    std::int32_t wishes = hooks.wants_to_stop && hooks.wants_to_stop() ? 1 : 0;
    world_.all_reduce(as_writable_bytes_of(wishes), {.dtype = DType::int32});
    return wishes > 0;
  }

  const spec::RunSpec& run_;
  const comm::Communicator& world_;
  spec::Workload workload_;
  const Feed& feed_;
  model::Model model_;
  Groups groups_;
  std::unique_ptr<const TensorLanes> tensor_;
  Holding holding_;
  BufferPool pool_;
  Weights weights_;
  StepRunner runner_;
  std::optional<Validation> validation_;
  std::optional<StepTrace> trace_;
  ActionObserver observe_;
  LossScale loss_scale_;
  RunSummary summary_;
  std::int64_t bad_in_a_row_ = 0;
  double compute_seconds_ = 0;  // since lanes were last dealt out
};

}  // namespace

void prepare_process(const spec::Training& training, int asked_threads, int local_ranks) {
  const int share = std::max(1, usable_cores() / std::max(1, local_ranks));
  const int usual = asked_threads > 0 ? std::min(asked_threads, usable_cores()) : share;
  if (training.threads > usable_cores()) {
    throw UsageError(fmt::format("training.threads = {} is more than the {} cores that this process may use",
                                 training.threads, usable_cores()));
  }
  const int count = training.threads > 0 ? static_cast<int>(training.threads) : usual;
  at::set_num_threads(count);
  kernels::set_threads(count);
  keep_freed_memory();
}

RunSummary run_training(const spec::RunSpec& run, const comm::Communicator& world, const RunHooks& hooks) {
  const Sources sources = open_sources(run, world);
  together(world, [&] {
    if (hooks.ready) hooks.ready();
  });
  return Run(run, world, sources).train(hooks);
}

}  // namespace lockstep::train
