// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/run.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/base/large_memory.h"
#include "lockstep/base/log.h"
#include "lockstep/base/seconds_since.h"
#include "lockstep/metrics/progress.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/plan/step_memory.h"
#include "lockstep/spec/lr_schedule.h"
#include "lockstep/spec/workload.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/groups.h"
#include "lockstep/train/heal.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/loss_scale.h"
#include "lockstep/train/mirror.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/rebalance.h"
#include "lockstep/train/replicas.h"
#include "lockstep/train/settings.h"
#include "lockstep/train/sources.h"
#include "lockstep/train/state_names.h"
#include "lockstep/train/step_boundary.h"
#include "lockstep/train/step_report.h"
#include "lockstep/train/step_runner.h"
#include "lockstep/train/step_teller.h"
#include "lockstep/train/step_trace.h"
#include "lockstep/train/validation.h"
#include "lockstep/train/voted_step.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {
namespace {

// Sums and gathers go through the peers' gradients and weights; a step later is soon enough for the next
// time.
constexpr std::size_t kPeerMemory = std::size_t{8} << 20;

bool is_due(std::int64_t every, std::int64_t step) {
  return every > 0 && step % every == 0;
}

// Of a step; what no phase has was spent somewhere else.
PhaseTimes complete(PhaseTimes times, double seconds) {
  times[Phase::other] += std::max(0.0, seconds - times.busy() - times[Phase::communication]);
  return times;
}

std::string data_digest(const Feed& feed, const data::StepShape& shape) {
  return to_text(hash_of_samples(feed, shape, 0));
}

// What the run can go on from.
Expected expected_of(const spec::RunSpec& run, const comm::Communicator& world, const Feed& feed,
                     const RunHooks& hooks) {
  const data::StepShape shape = feed_options(run, spec::workload_of(run, world.size())).shape;
  return {.run = run,
          .data_digest = data_digest(feed, shape),
          .tokenizer_digest = hooks.tokenizer_digest,
          .samples_per_step = feed.samples_per_step()};
}

}  // namespace

class Training::Impl {
 public:
  Impl(const spec::RunSpec& run, const comm::Communicator& world, RunHooks hooks, Sources sources)
      : run_(run),
        world_(world),
        hooks_(std::move(hooks)),
        sources_(std::move(sources)),
        workload_(spec::workload_of(run, world.size())),
        shape_(feed_options(run, workload_).shape),
        feed_(*sources_.feed),
        model_(model_of(run.model)),
        groups_(make_groups(world, plan::mesh_of(run, world.size()), run.parallelism.zero_scope)),
        tensor_(tensor_lanes(run, model_, groups_.tensor)),
        holding_(holding_of(
            model_, sources_.pipeline, groups_,
            {.tensor = tensor_.get(), .zero_stage = static_cast<int>(run.parallelism.zero_stage)})),
        pool_(world),
        weights_(holding_, pool_, weight_options_here()),
        runner_(model_, holding_, pool_, weights_,
                {.lanes = plan::first_ownership(run, world.size()),
                 .micro_batches = static_cast<int>(workload_.micro_batches_per_lane),
                 .recompute_every = static_cast<int>(spec::recompute_stride(run.parallelism).value_or(0)),
                 .sum = sum_options(run.comm),
                 .pipeline = sources_.pipeline,
                 .hidden = hidden_sizes(run, holding_.team())}),
        mirror_(needs_mirror() ? Mirror::make(holding_, weights_) : nullptr),
        voted_(hooks_.agree, runner_, mirror_.get()),
        teller_(run, world, {.after_step = hooks_.after_step, .ranks_may_leave = hooks_.agree != nullptr}),
        loss_scale_(run.training) {
    reached_.progress.loss_scale = loss_scale_.value();
    world.limit_peer_memory(kPeerMemory);
    if (sources_.validation) {
      validation_.emplace(run, *sources_.validation, model_, holding_, sources_.pipeline, weights_);
      validation_->watch(hooks_.activity);
    }
  }

  RunSummary train() {
    std::optional<Reached> healed;
    if (hooks_.kept != nullptr) healed = heal(*hooks_.kept, holding_, weights_);
    if (hooks_.only_saves && !healed) return {.stopped = true};
    SaveHistory own;
    SaveHistory& saves = hooks_.saves != nullptr ? *hooks_.saves : own;
    agree_on(saves, world_);
    const std::optional<Resumed> resumed = find_begin(healed, saves);
    const std::unique_ptr<Checkpointer> checkpointer = make_checkpointer();
    StepBoundary boundary(world_, checkpointer.get(), saves,
                          {.checkpoint = run_.checkpoint,
                           .wants_to_stop = hooks_.wants_to_stop,
                           .before_save = [this] { compare_copies(); },
                           .saved = hooks_.saved,
                           .resumed = resumed && is_own(*resumed) ? resumed : std::nullopt});
    if (healed || (resumed && resumed->is_told_again)) tell_again(boundary);
    bool stopped = (hooks_.only_saves && !is_done()) || left_validation_;
    if (!stopped && !is_done()) stopped = boundary.look();
    // A rank that cannot write one has not begun: the others go on without it.
    if (!stopped && !is_done()) begin_trace();
    if (hooks_.begun) hooks_.begun(reached_.progress.step);
    if (checkpointer && !stopped && !is_done() && spec::saves_on_the_way(run_)) checkpointer->prepare();
    while (!is_done() && !stopped && !voted_.regroups()) {
      take_step(boundary);
      LOCKSTEP_FAILPOINT("train.boundary");
      stopped = is_done() ? left_validation_ : boundary.pass(reached_);
      teller_.add(in_phase(Phase::checkpoint, boundary.take_copy_seconds()));
    }
    const checkpoint::Progress& progress = reached_.progress;
    RunSummary summary = {.steps = progress.step,
                          .bad_steps = progress.bad_steps,
                          .stopped = stopped,
                          .regroups = voted_.regroups() && !stopped && !is_done(),
                          .loss = progress.loss};
    if (summary.regroups) {
      boundary.drain();
      summary.trace = end_trace();
      return summary;
    }
    LOCKSTEP_FAILPOINT("train.ended");
    const bool has_trained = step() > 0;
    if (has_trained) summary.checkpoint = boundary.finish(reached_);
    if (hooks_.trained && !checkpointer && has_trained) {
      const at::Tensor values = weights_.gather_working(world_.rank() == 0);
      together(world_, [&] { hooks_.trained(holding_.whole, values); });
    }
    summary.trace = end_trace();
    LOCKSTEP_FAILPOINT("train.finished");
    together(world_, [&] {
      if (hooks_.finished) hooks_.finished(summary);
    });
    return summary;
  }

  bool is_healed() const { return is_healed_; }
  std::int64_t step() const { return reached_.progress.step; }
  bool is_done() const { return step() >= run_.training.steps; }

  std::optional<std::int64_t> undecided() const { return voted_.undecided(); }
  void settle(std::int64_t decided) { reached_ = voted_.settle(decided).value_or(reached_); }
  bool is_vouched_for() const {
    return weights_.journal() != nullptr && weights_.are_intact(hooks_.activity);
  }
  bool is_alone_with_its_share() const {
    const Groups& groups = holding_.groups;
    const comm::Communicator& holders = holding_.partition.shards_update ? groups.copies : groups.data;
    return holders.size() == 1 && (mirror_ == nullptr || weights_.journal() != nullptr);
  }
  KeptState keep(std::span<const Rank> gone) {
    if (!weights_.are_intact(hooks_.activity)) {
      throw CorruptState(fmt::format("after step {} a bit of the state of this rank has changed", step()));
    }
    std::optional<LargeMemory> own = memory_for_own();  // before copies for others take it
    if (!own) return {};
    return {
        holding_,        weights_,
        *std::move(own), mirror_ ? mirror_->take_shares(gone, hooks_.activity) : std::vector<MirroredShare>(),
        reached_,        hooks_.activity};
  }

 private:
  std::optional<LargeMemory> memory_for_own() const {
    const std::size_t bytes = KeptState::bytes_of_own(holding_, weights_);
    try {
      return LargeMemory(bytes);
    } catch (const std::bad_alloc&) {
      log::warning(fmt::format(
          "a copy of the state of this worker after step {} takes {} of memory, which it cannot get: it gets "
          "its state from the others or, where they do not have all of it, from the newest checkpoint",
          step(), metrics::format_memory(bytes)));
      return std::nullopt;
    }
  }

  bool needs_mirror() const {
    return hooks_.agree && plan::mirrors_shares(run_) && Mirror::is_needed(holding_);
  }

  Weights::Options weight_options_here() const {
    Weights::Options options = weight_options(run_);
    options.has_journal = needs_mirror() && Mirror::is_in_place(holding_);
    return options;
  }

  // Where the first step begins; when that is a checkpoint, which.
  std::optional<Resumed> find_begin(const std::optional<Reached>& healed, SaveHistory& saves) {
    std::optional<Resumed> resumed;
    if (!healed) resumed = resume();
    if (!healed && !resumed) begin_anew();
    if (healed) reached_ = *healed;
    if (resumed) reached_ = {resumed->progress, resumed->last_step};
    if (!healed) begin_from(saves, step());
    loss_scale_.restore(reached_.progress.loss_scale, reached_.progress.good_steps);
    if (resumed) resumed->is_told_again = is_untold(*resumed);
    if (resumed && hooks_.resumed) hooks_.resumed(*resumed);
    if (mirror_) mirror_->fill();
    is_healed_ = healed.has_value();
    // Only when all have theirs can a host be lost without loss, which is what this says.
    if (healed) world_.barrier();
    if (healed && hooks_.healed) hooks_.healed(*healed);
    if (healed) LOCKSTEP_FAILPOINT("train.healed");
    return resumed;
  }

  // Making values takes longer than getting them: whoever has some to go on from does without.
  void begin_anew() {
    weights_.give_first_values(static_cast<std::uint64_t>(run_.training.seed));
    load_first_values();
  }

  void begin_trace() {
    if (!run_.metrics.enable_trace) return;
    trace_.emplace(StepTrace::Options{.folder = trace_folder(run_), .first_step = step() + 1}, groups_);
    observe_ = std::bind_front(&StepTrace::add, &*trace_);
  }

  std::string end_trace() {
    if (!trace_) return "";
    const elastic::Activity::Wait excused(hooks_.activity);
    return trace_->gather().value_or("").string();
  }

  // Opened now where they were not expected to be needed.
  void load_first_values() {
    const std::string& path = run_.checkpoint.initial_load_path;
    if (path.empty()) return;
    together(world_, [&] {
      if (!sources_.first_values) sources_.first_values.emplace(path, run_.model);
    });
    sources_.first_values->load(holding_, weights_);
    sources_.first_values.reset();
  }

  std::optional<Resumed> resume() {
    return train::resume(hooks_.checkpoints, expected_of(run_, world_, feed_, hooks_), holding_, weights_);
  }

  // A run that has ended while it validated had saved the step before that, and not told it.
  bool is_untold(const Resumed& resumed) const {
    return leader_says(resumed.last_step && hooks_.is_untold &&
                       hooks_.is_untold(resumed, is_validated(step())));
  }

  // What the run goes on from is in its own folder, where it will be found again.
  bool is_own(const Resumed& resumed) const {
    std::error_code is_none;
    const std::filesystem::path folder = std::filesystem::path(resumed.path).parent_path();
    return leader_says(std::filesystem::equivalent(folder, hooks_.checkpoints, is_none));
  }

  bool leader_says(bool what) const {
    std::int64_t answer = what ? 1 : 0;
    world_.broadcast(as_writable_bytes_of(answer), {.dtype = DType::int64});
    return answer != 0;
  }

  // The last step: whoever told of it may have been lost before or after that.
  void tell_again(StepBoundary& boundary) {
    std::optional<StepReport> report = report_of(reached_, workload_.tokens_per_step);
    if (!report) return;
    save_and_validate(*report, boundary);
    teller_.tell_again(*report);
  }

  std::unique_ptr<Checkpointer> make_checkpointer() const {
    if (hooks_.checkpoints.empty()) return nullptr;
    checkpoint::Manifest manifest = manifest_of(run_, world_.size());
    manifest.data_digest = data_digest(feed_, shape_);
    manifest.tokenizer_digest = hooks_.tokenizer_digest;
    manifest.tensors = state_tensors(holding_.whole, weights_.moments());
    return std::make_unique<Checkpointer>(
        holding_, weights_,
        Checkpointer::Options{
            .folder = hooks_.checkpoints,
            .retention = {.last = run_.checkpoint.keep_last, .every = run_.checkpoint.keep_every},
            .manifest = std::move(manifest),
            .activity = hooks_.activity,
            .lost = hooks_.lost});
  }

  void take_step(StepBoundary& boundary) {
    StepReport report = train_step(step() + 1);
    save_and_validate(report, boundary);
    if (is_due(run_.parallelism.rebalance_freq, report.step)) report.lanes = rebalance();
    teller_.tell(report);
    if (hooks_.see_state) hooks_.see_state({holding_.whole, weights_, runner_});
    teller_.evict_if_told(report);
    if (is_due(run_.elastic.compare_freq, report.step)) compare_copies();
    if (has_gone_wrong()) refuse_to_go_on(report);
  }

  // Once for each step: what is saved was compared, if anything is.
  void compare_copies() {
    if (run_.elastic.compare_freq == 0 || compared_ == step()) return;
    compared_ = step();
    const elastic::Activity::Wait excused(hooks_.activity);  // as long as the others wait
    require_equal_copies(holding_, weights_, mirror_.get(), step());
  }

  StepReport train_step(std::int64_t step) {
    failpoint::set_step(step);
    const auto began = Clock::now();
    LOCKSTEP_FAILPOINT("train.step.begun");
    StepReport report = {
        .step = step,
        .learning_rate = spec::lr_at(step - 1, run_.lr_scheduler, run_.optimizer, run_.training.steps),
        .loss_scale = loss_scale_.value(),
        .tokens = workload_.tokens_per_step};
    const auto take = [&](const StepResult& result) {
      report.loss = result.loss_sum / static_cast<double>(workload_.tokens_per_step);
      report.gradient_norm = result.gradient_norm;
      report.updated = result.updated;
      report.seconds = seconds_since(began);
    };
    const std::uint64_t position = static_cast<std::uint64_t>(step - 1) * feed_.samples_per_step();
    const OptimizerStep optimizer =
        optimizer_step(run_.optimizer, report.learning_rate, step - reached_.progress.bad_steps);
    if (trace_) trace_->begin_step(step, runner_.passes());
    const StepResult result = runner_.run(
        {.batch = [&](int lane, int micro_batch) { return feed_.batch(position, lane, micro_batch); },
         .loss_scale = static_cast<float>(report.loss_scale / static_cast<double>(report.tokens)),
         .gradient_scale = static_cast<float>(1.0 / report.loss_scale),
         .max_norm = run_.training.max_norm,
         .optimizer = optimizer,
         .agree =
             [&](const StepResult& so_far) {
               take(so_far);
               voted_.vote({.reached = after(report), .optimizer = optimizer});
             },
         .activity = hooks_.activity,
         .observe = observe_});
    if (trace_) trace_->end_step();
    take(result);
    report.times = complete(result.times, report.seconds);
    compute_seconds_ += report.times->computing();
    teller_.add(*report.times);
    if (result.not_finite) report.not_finite = holding_.whole.specs()[*result.not_finite].name;
    reached_ = after(report);
    voted_.applied();
    loss_scale_.record(report.updated);
    LOCKSTEP_FAILPOINT_VALUES("train.applied", any_weights());
    return report;
  }

  // Some that blocks compute with; none where they are shared out.
  Bytes any_weights() const {
    return holding_.shards_weights ? Bytes()
                                   : weights_.working(elements_of(holding_.layout.places().front()));
  }

  // What the run has reached with this step.
  Reached after(const StepReport& report) const {
    return reached_with(report, {.progress = reached_.progress,
                                 .loss_scale = loss_scale_,
                                 .samples_per_step = feed_.samples_per_step()});
  }

  bool is_validated(std::int64_t step) const {
    return validation_ && (is_due(run_.validation.freq, step) || step == run_.training.steps);
  }

  // The step that is told next is saved meanwhile, if that is due.
  void save_and_validate(StepReport& report, StepBoundary& boundary) {
    if (!is_validated(report.step)) return;
    // A world that only saves has the one copy of the state, and leaves the rest to the run that goes on.
    // After the last step none does.
    const bool only_saves = hooks_.only_saves && !is_done();
    const bool stops =
        only_saves || (has_gone_wrong() ? boundary.look() : boundary.begin_untold(reached_, is_done()));
    validate(report, boundary, stops);
  }

  // The run that goes on makes up for a validation that was left.
  void validate(StepReport& report, StepBoundary& boundary, bool stops) {
    LOCKSTEP_FAILPOINT("train.validate");
    if (!stops) report.validation_loss = validation_->loss([&] { return boundary.look(); });
    left_validation_ = !report.validation_loss;
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

  bool has_gone_wrong() const { return reached_.progress.bad_in_a_row >= run_.training.max_bad_steps; }

  [[noreturn]] void refuse_to_go_on(const StepReport& report) const {
    refuse_together(
        world_,
        fmt::format(
            "step {}: the gradients of {} steps in a row were not finite, this time first that of {}; "
            "lower optimizer.lr or raise lr_scheduler.warmup_steps{}",
            report.step, reached_.progress.bad_in_a_row, report.not_finite,
            run_.training.dtype == DType::fp16
                ? fmt::format(", lower the scale of the loss, which is {} (training.loss_scale, or "
                              "training.min_loss_scale), or use training.dtype = \"bf16\"",
                              loss_scale_.value())
                : ""));
  }

  const spec::RunSpec& run_;
  const comm::Communicator& world_;
  RunHooks hooks_;
  Sources sources_;
  spec::Workload workload_;
  data::StepShape shape_;
  const Feed& feed_;
  model::Model model_;
  Groups groups_;
  std::unique_ptr<const TensorLanes> tensor_;
  Holding holding_;
  BufferPool pool_;
  Weights weights_;
  StepRunner runner_;
  std::unique_ptr<Mirror> mirror_;  // null: none is needed
  VotedStep voted_;
  StepTeller teller_;
  std::optional<Validation> validation_;
  std::optional<StepTrace> trace_;
  ActionObserver observe_;
  LossScale loss_scale_;
  Reached reached_;
  bool is_healed_ = false;
  bool left_validation_ = false;  // the last one, because somebody wants to stop
  std::int64_t compared_ = -1;    // the step whose copies were
  double compute_seconds_ = 0;    // since lanes were last dealt out
};

Training::Training(const spec::RunSpec& run, const comm::Communicator& world, RunHooks hooks) {
  bool is_new = false;
  together(world, [&] { is_new = !hooks.goes_on && !newest_checkpoint(run.checkpoint, hooks.checkpoints); });
  Sources sources = open_sources(run, world, is_new);
  if (!hooks.goes_on && !is_new) require_continuation(expected_of(run, world, *sources.feed, hooks), world);
  together(world, [&] {
    if (hooks.ready) hooks.ready();
  });
  impl_ = std::make_unique<Impl>(run, world, std::move(hooks), std::move(sources));
}

Training::~Training() = default;

RunSummary Training::train() {
  return impl_->train();
}

bool Training::is_healed() const {
  return impl_->is_healed();
}

std::int64_t Training::step() const {
  return impl_->step();
}

std::optional<std::int64_t> Training::undecided() const {
  return impl_->undecided();
}

void Training::settle(std::int64_t decided) {
  impl_->settle(decided);
}

bool Training::is_vouched_for() const {
  return impl_->is_vouched_for();
}

bool Training::is_alone_with_its_share() const {
  return impl_->is_alone_with_its_share();
}

KeptState Training::keep(std::span<const Rank> gone) {
  return impl_->keep(gone);
}

RunSummary run_training(const spec::RunSpec& run, const comm::Communicator& world, const RunHooks& hooks) {
  return Training(run, world, hooks).train();
}

}  // namespace lockstep::train
