// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/spec/key.h"
#include "lockstep/spec/presets.h"
#include "lockstep/spec/refuse.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

namespace lockstep::spec {
namespace {

// Those of comm.all_reduce whose order of addition does not depend on the layout (schedule::is_exact).
constexpr std::array<std::string_view, 3> kExact = {"auto", "direct", "halving_doubling"};

class Checker {
 public:
  explicit Checker(const Places& places) : places_(places) {}

  // `sentence` begins with a key; the error stands at the first of `keys` that somebody has set.
  void require(bool holds, std::initializer_list<std::string_view> keys, const std::string& sentence) const {
    if (!holds) refuse_at(keys, sentence);
  }

  [[noreturn]] void refuse_at(std::initializer_list<std::string_view> keys,
                              const std::string& sentence) const {
    refuse(place_of(places_, keys), sentence);
  }

  bool is_set(std::string_view key) const { return places_.contains(key); }

 private:
  const Places& places_;
};

// What `key` would be, were it left out: its default, or what follows from the others.
Value left_out(const Key& key, RunSpec run) {
  key.set(run, default_of(key));
  fill_model(run);
  return key.get(run);
}

// What to set the other key to, so that the condition holds.
std::string remedy_for(const Condition& condition) {
  if (!condition.other_than) return toml_of(condition);
  std::vector<std::string> others;
  for (const std::string_view choice : find_key(condition.key)->accepted.choices) {
    if (choice != condition.value) others.push_back(quoted(choice));
  }
  if (!others.empty()) return fmt::format("{}", fmt::join(others, " or "));
  return fmt::format("{} or more", std::stoll(std::string(condition.value)) + 1);
}

// Only what somebody has said and would be missed: a preset sets keys as well, and a resolved configuration
// names every key.
void check_conditions(const RunSpec& run, const Checker& checker) {
  for (const Key& key : all_keys()) {
    const std::string name = key.full_name();
    if (has_effect(key, run) || !checker.is_set(name)) continue;
    const Value value = key.get(run);
    if (value == default_of(key) || value == left_out(key, run)) continue;
    const Condition& broken = *std::ranges::find_if_not(
        key.accepted.only_with, [&](const Condition& condition) { return holds(condition, run); });
    const Key& other = *find_key(broken.key);
    checker.refuse_at(
        {name},
        fmt::format("{} = {} has no effect with {} = {}: set the latter to {}, or leave the former at {}",
                    name, toml_of(key, value), broken.key, toml_of(other, other.get(run)), remedy_for(broken),
                    toml_of(key, default_of(key))));
  }
}

void check_attention(const Model& model, const Checker& checker) {
  const bool cut_evenly = model.head_width != model.width / model.heads || model.width % model.heads == 0;
  checker.require(
      cut_evenly, {"model.heads", "model.width"},
      fmt::format("model.width = {} is not a multiple of model.heads = {}; change one of them or give "
                  "model.head_width",
                  model.width, model.heads));
  checker.require(
      model.heads % model.kv_heads == 0, {"model.kv_heads", "model.heads"},
      fmt::format("model.kv_heads = {} does not divide model.heads = {}", model.kv_heads, model.heads));
  if (model.name == ModelFamily::gpt) {
    checker.require(
        model.kv_heads == model.heads, {"model.kv_heads"},
        fmt::format("model.kv_heads = {} must equal model.heads = {} in a gpt", model.kv_heads, model.heads));
    checker.require(model.head_width * model.heads == model.width, {"model.head_width"},
                    "model.head_width of a gpt is model.width / model.heads; leave it out");
    checker.require(model.tied_embeddings, {"model.tied_embeddings"},
                    "model.tied_embeddings is true in every gpt; leave it out");
  } else {
    checker.require(
        model.head_width % 2 == 0, {"model.head_width", "model.heads", "model.width"},
        fmt::format("model.head_width = {} must be even, because the rotary embedding turns pairs",
                    model.head_width));
  }
}

void check_rope_scaling(const Model& model, const Checker& checker) {
  checker.require(
      model.rope_low_freq_factor < model.rope_high_freq_factor,
      {"model.rope_low_freq_factor", "model.rope_high_freq_factor"},
      fmt::format("model.rope_low_freq_factor = {} must be below model.rope_high_freq_factor = {}",
                  model.rope_low_freq_factor, model.rope_high_freq_factor));
}

void check_model(const RunSpec& run, const Checker& checker) {
  const Model& model = run.model;
  if (!model.preset.empty()) {
    checker.require(model.name == preset_model(model.preset).name, {"model.name"},
                    fmt::format("model.name contradicts model.preset = \"{}\"; leave it out", model.preset));
  }
  if (model.name != ModelFamily::mlp) check_attention(model, checker);
  check_rope_scaling(model, checker);
  checker.require(run.training.seq_len <= model.max_seq_len, {"training.seq_len", "model.max_seq_len"},
                  fmt::format("training.seq_len = {} is longer than model.max_seq_len = {}",
                              run.training.seq_len, model.max_seq_len));
  checker.require(model.name != ModelFamily::mlp || run.training.seq_len == model.max_seq_len,
                  {"training.seq_len", "model.max_seq_len"},
                  "training.seq_len and model.max_seq_len, the inputs of an mlp, must be equal");
}

void check_data(const RunSpec& run, const Checker& checker) {
  const bool dense = run.model.name == ModelFamily::mlp;
  checker.require(dense || run.data.sharding != Sharding::feature, {"data.sharding", "model.name"},
                  "data.sharding = \"feature\" divides the columns of dense samples, which only "
                  "model.name = \"mlp\" reads; use sample or batch");
}

void check_training(const RunSpec& run, const Checker& checker) {
  const Training& training = run.training;
  const LrScheduler& scheduler = run.lr_scheduler;
  checker.require(
      scheduler.warmup_steps <= training.steps, {"lr_scheduler.warmup_steps", "training.steps"},
      fmt::format(
          "lr_scheduler.warmup_steps = {} is more than training.steps = {}; lower the one or raise the other",
          scheduler.warmup_steps, training.steps));
  checker.require(training.min_loss_scale <= training.initial_loss_scale,
                  {"training.min_loss_scale", "training.initial_loss_scale"},
                  "training.min_loss_scale is more than training.initial_loss_scale");
}

void check_schedule(const RunSpec& run, const Checker& checker) {
  const Parallelism& parallelism = run.parallelism;
  checker.require(
      parallelism.virtual_stages == 1 || !parallelism.schedule.ends_with(".csv"),
      {"parallelism.virtual_stages", "parallelism.schedule"},
      fmt::format("parallelism.virtual_stages = {} has no effect with parallelism.schedule = {}, a file that "
                  "says how many there are: leave it out",
                  parallelism.virtual_stages, toml_of(parallelism.schedule)));
}

void check_parallelism(const RunSpec& run, const Checker& checker) {
  const Parallelism& parallelism = run.parallelism;
  for (const auto& [key, size] : {std::pair{"parallelism.data", parallelism.data},
                                  {"parallelism.tensor", parallelism.tensor},
                                  {"parallelism.pipeline", parallelism.pipeline}}) {
    checker.require(size != 0, {key}, fmt::format("{} must be -1, or 1 or more", key));
  }
  checker.require(parallelism.tensor != -1 || parallelism.pipeline != -1,
                  {"parallelism.tensor", "parallelism.pipeline"},
                  "parallelism.tensor and parallelism.pipeline cannot both be -1, the rest of the workers: "
                  "give one of them a size");
  for (const auto& [key, size] : {std::pair{"parallelism.lanes", parallelism.lanes},
                                  {"parallelism.tensor_lanes", parallelism.tensor_lanes}}) {
    const auto lanes = static_cast<std::uint64_t>(size);
    checker.require(lanes == 0 || std::has_single_bit(lanes), {key},
                    fmt::format("{} = {} must be a power of two, such as {} or {}", key, lanes,
                                std::bit_floor(lanes), std::bit_ceil(lanes)));
  }
  const auto& weights = parallelism.lane_weights;
  checker.require(weights.empty() ||
                      std::any_of(weights.begin(), weights.end(), [](double weight) { return weight > 0; }),
                  {"parallelism.lane_weights"}, "parallelism.lane_weights must have one that is above 0");
  checker.require(std::ranges::all_of(parallelism.part_blocks,
                                      [](double blocks) { return blocks == std::floor(blocks); }),
                  {"parallelism.part_blocks"}, "parallelism.part_blocks must be whole numbers");
  checker.require(
      recompute_stride(parallelism).has_value(), {"parallelism.recompute"},
      fmt::format("parallelism.recompute must be none, all, or a number from 1 to 10000, not '{}'",
                  parallelism.recompute));
  const std::int64_t pieces = tensor_lanes(parallelism);
  checker.require(
      run.comm.exact || pieces == 1 || pieces == -1,
      {"comm.exact", "parallelism.tensor_lanes", "parallelism.tensor"},
      fmt::format("comm.exact = false cannot be with parallelism.tensor_lanes = {}: the copies of a "
                  "parameter that tensor lanes share would drift apart; leave it out",
                  pieces));
  checker.require(!parallelism.sequence_parallel || pieces > 1 || pieces == -1,
                  {"parallelism.sequence_parallel"},
                  "parallelism.sequence_parallel shares out tokens among workers that share layers; set "
                  "parallelism.tensor to 2 or more, or leave it out");
  const bool canonical = std::find(kExact.begin(), kExact.end(), run.comm.all_reduce) != kExact.end();
  checker.require(
      !run.comm.exact || canonical, {"comm.all_reduce", "comm.exact"},
      fmt::format("comm.all_reduce = \"{}\" has an order of addition of its own; set comm.exact = "
                  "false, or choose {}",
                  run.comm.all_reduce, fmt::join(kExact, ", ")));
  const bool knows_lanes = run.comm.all_reduce == "auto" || run.comm.all_reduce == "direct";
  checker.require(
      !run.comm.exact || knows_lanes || (parallelism.rebalance_freq == 0 && weights.empty()),
      {"comm.all_reduce", "parallelism.rebalance_freq", "parallelism.lane_weights"},
      fmt::format("comm.all_reduce = \"{}\" keeps the order of lanes only when all workers own as many: "
                  "with parallelism.rebalance_freq or lane_weights use auto or direct",
                  run.comm.all_reduce));
}

// Who gives one of them expects losses. A frequency of 0 says that none are wanted for now.
void check_validation(const RunSpec& run, const Checker& checker) {
  const bool has_corpus = !run.data.validation.empty();
  checker.require(
      run.validation.freq == 0 || has_corpus, {"validation.freq"},
      fmt::format("validation.freq = {} has nothing to validate on; name a corpus in data.validation, or "
                  "leave it out",
                  run.validation.freq));
  checker.require(!has_corpus || !checker.is_set("data.validation") || checker.is_set("validation.freq"),
                  {"data.validation"},
                  "data.validation has no effect without validation.freq: set that to the steps between "
                  "validation losses, such as 100, or to 0 for none");
  checker.require(run.validation.steps == Validation{}.steps || checker.is_set("validation.freq"),
                  {"validation.steps"},
                  "validation.steps has no effect without validation.freq: set that to the steps between "
                  "validation losses, such as 100, or to 0 for none");
}

void check_elastic(const RunSpec& run, const Checker& checker) {
  const Elastic& elastic = run.elastic;
  checker.require(
      elastic.max_workers == 0 || elastic.min_workers <= elastic.max_workers,
      {"elastic.min_workers", "elastic.max_workers"},
      fmt::format("elastic.min_workers = {} is more than elastic.max_workers = {}; lower the one or "
                  "raise the other",
                  elastic.min_workers, elastic.max_workers));
}

void check_checkpoint(const RunSpec& run, const Checker& checker) {
  const Checkpoint& checkpoint = run.checkpoint;
  const bool is_auto = checkpoint.resume == "auto";
  // With auto a job may be started again and again by one command: the weights are for its first time.
  checker.require(checkpoint.resume.empty() || is_auto || checkpoint.initial_load_path.empty(),
                  {"checkpoint.resume", "checkpoint.initial_load_path"},
                  fmt::format("checkpoint.resume = {} (--resume) goes on with a run, and "
                              "checkpoint.initial_load_path = {} (--init-from) begins one: leave one of "
                              "the two out, or unset it with --checkpoint.resume= or "
                              "--checkpoint.initial_load_path=",
                              toml_of(checkpoint.resume), toml_of(checkpoint.initial_load_path)));
  checker.require(checkpoint.enabled || !is_auto, {"checkpoint.resume", "checkpoint.enabled"},
                  "checkpoint.resume = \"auto\" goes on from what the run itself saves, and "
                  "checkpoint.enabled = false saves nothing: set the latter to true, or name a checkpoint "
                  "with --resume PATH");
}

void check_metrics(const RunSpec& run, const Checker& checker) {
  const std::filesystem::path folder = run.metrics.save_tb_folder;
  const bool inside = folder.is_relative() && std::find(folder.begin(), folder.end(), "..") == folder.end();
  checker.require(inside, {"metrics.save_tb_folder"},
                  fmt::format("metrics.save_tb_folder = \"{}\" is outside of job.dump_folder: give a path "
                              "inside it, such as tensorboard",
                              folder.string()));
}

}  // namespace

std::string place_of(const Places& places, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto found = places.find(key); found != places.end()) return found->second;
  }
  return {};
}

void check_run(const RunSpec& run, const Places& places) {
  const Checker checker(places);
  checker.require(!run.job.dump_folder.empty(), {"job.dump_folder"},
                  "job.dump_folder is empty: name the folder of the run");
  check_model(run, checker);
  check_data(run, checker);
  check_parallelism(run, checker);
  check_training(run, checker);
  // The least number of lanes; with that of the workers it is checked again.
  micro_batches_per_lane(run.training, std::max<std::int64_t>(1, run.parallelism.lanes), places);
  check_metrics(run, checker);
}

void check_effects(const RunSpec& run, const Places& places) {
  const Checker checker(places);
  check_conditions(run, checker);
  check_schedule(run, checker);
  check_checkpoint(run, checker);
  check_elastic(run, checker);
  check_validation(run, checker);
}

}  // namespace lockstep::spec
