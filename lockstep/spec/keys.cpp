// SPDX-License-Identifier: Apache-2.0
//
// The rows of the table: name, description and limits of every key.

#include <utility>

#include "lockstep/base/world.h"
#include "lockstep/spec/key.h"
#include "lockstep/spec/member.h"
#include "lockstep/spec/presets.h"

namespace lockstep::spec {
namespace {

// The limits of sizes keep products of them (parameters, tokens of a step) inside 63 bits; workload_of()
// keeps a global batch that is not given within the limit of one that is.
constexpr double kMany = 9007199254740992.0;  // 2^53: no limit that anybody meets
constexpr Bounds kCount = {0, kMany};
constexpr Bounds kPositive = {1, kMany};
constexpr Bounds kFraction = {0, 1};
constexpr Bounds kBelowOne = {.least = 0, .most = 1, .below_most = true};

constexpr Condition kWithLlama = {"model.name", "llama"};
constexpr Condition kWithTokens = {.key = "model.name", .value = "mlp", .other_than = true};
constexpr Condition kWithRopeScaling = {"model.rope_scaling", "llama3"};
constexpr Condition kWithFp16 = {"training.dtype", "fp16"};
constexpr Condition kWithAdaptedScale = {"training.loss_scale", "0.0"};
constexpr Condition kWithAdamW = {"optimizer.name", "adamw"};
constexpr Condition kWithDecay = {.key = "lr_scheduler.decay_type", .value = "constant", .other_than = true};
constexpr Condition kWithStages = {.key = "parallelism.pipeline", .value = "1", .other_than = true};
constexpr Condition kWithShares = {.key = "parallelism.zero_stage", .value = "0", .other_than = true};
constexpr Condition kWithCheckpoints = {"checkpoint.enabled", "true"};
constexpr Condition kWithElastic = {"elastic.enabled", "true"};
constexpr Condition kWithWatch = {.key = "elastic.straggler_freq", .value = "0", .other_than = true};

template <auto Section, auto Member>
Key row(std::string_view name, std::string_view help, Accepted accepted = {}) {
  if (accepted.choices.empty()) accepted.choices = choices_of_member<Section, Member>();
  return {.section = {},
          .name = name,
          .help = help,
          .accepted = std::move(accepted),
          .get = get_member<Section, Member>,
          .set = set_member<Section, Member>};
}

std::vector<Key> job() {
  constexpr auto in = &RunSpec::job;
  return {
      row<in, &Job::dump_folder>("dump_folder", "folder of the run: configuration, metrics, weights"),
      row<in, &Job::description>("description", "free text that is kept with the run"),
      row<in, &Job::overwrite>("overwrite", "replace the run that dump_folder holds already"),
  };
}

std::vector<Key> model() {
  constexpr auto in = &RunSpec::model;
  return {
      row<in, &Model::name>("name", "family of the model"),
      row<in, &Model::preset>("preset", "sizes by name; keys that are given as well take precedence",
                              {.choices = preset_names()}),
      row<in, &Model::layers>("layers", "transformer layers, or hidden layers of an mlp", {{1, 10000}}),
      row<in, &Model::width>("width", "features of a token between layers", {{1, 1 << 17}}),
      row<in, &Model::heads>("heads", "query heads of a layer",
                             {.bounds = {1, 4096}, .only_with = {kWithTokens}}),
      row<in, &Model::kv_heads>("kv_heads", "key and value heads of a layer; 0: as many as heads",
                                {.bounds = {0, 4096}, .only_with = {kWithTokens}}),
      row<in, &Model::head_width>("head_width", "features of a head; 0: width / heads",
                                  {.bounds = {0, 1 << 14}, .only_with = {kWithTokens}}),
      row<in, &Model::ffn_width>("ffn_width",
                                 "features inside the feed-forward part; 0: 4 width, for llama 8/3 width "
                                 "rounded up to a multiple of 256",
                                 {.bounds = {0, 1 << 20}, .only_with = {kWithTokens}}),
      row<in, &Model::vocab_size>("vocab_size", "tokens of the vocabulary, or outputs of an mlp",
                                  {{1, 1 << 24}}),
      row<in, &Model::max_seq_len>(
          "max_seq_len",
          "longest sequence, the number of positions of gpt and of inputs of an mlp; "
          "0: training.seq_len",
          {{0, 1 << 24}}),
      row<in, &Model::rope_theta>("rope_theta", "base of the rotary embedding",
                                  {.bounds = {1, 1e12}, .only_with = {kWithLlama}}),
      row<in, &Model::rope_scaling>(
          "rope_scaling",
          "how the rotary embedding is stretched for longer texts: none, or llama3 as LLaMA 3.1 and 3.2 do",
          {.only_with = {kWithLlama}}),
      row<in, &Model::rope_factor>("rope_factor", "slow turns of the embedding become so many times slower",
                                   {.bounds = {1, 1e6}, .only_with = {kWithRopeScaling}}),
      row<in, &Model::rope_low_freq_factor>(
          "rope_low_freq_factor", "slow are those that turn at most so many times in rope_original_seq_len",
          {.bounds = {.least = 0, .most = 1e6, .above_least = true}, .only_with = {kWithRopeScaling}}),
      row<in, &Model::rope_high_freq_factor>(
          "rope_high_freq_factor",
          "those that turn at least so many times in it stay; between the two, they are mixed",
          {.bounds = {.least = 0, .most = 1e6, .above_least = true}, .only_with = {kWithRopeScaling}}),
      row<in, &Model::rope_original_seq_len>("rope_original_seq_len",
                                             "longest sequence before the embedding was stretched",
                                             {.bounds = {1, 1 << 24}, .only_with = {kWithRopeScaling}}),
      row<in, &Model::norm_eps>(
          "norm_eps", "added to the variance in norms",
          {.bounds = {.least = 0, .most = 1, .above_least = true}, .only_with = {kWithTokens}}),
      row<in, &Model::tied_embeddings>("tied_embeddings", "the head uses the weights of the token embedding",
                                       {.only_with = {kWithTokens}}),
      row<in, &Model::dropout>("dropout",
                               "share of the embeddings, and of what attention and feed-forward parts add, "
                               "that is dropped in training",
                               {kBelowOne}),
  };
}

std::vector<Key> data() {
  constexpr auto in = &RunSpec::data;
  return {
      row<in, &Data::train>("train", "corpora: paths, or { path = \"...\", weight = 2.0 }",
                            {{.least = 0, .most = 1e9, .above_least = true}}),
      row<in, &Data::validation>("validation", "corpora of the validation loss, written as in train",
                                 {{.least = 0, .most = 1e9, .above_least = true}}),
      row<in, &Data::tokenizer>("tokenizer", "file of the tokenizer that made the corpora",
                                {.only_with = {kWithTokens}}),
      row<in, &Data::sharding>("sharding",
                               "what the lanes of a step divide: shuffled samples, shuffled runs of samples, "
                               "or the columns of all samples"),
  };
}

std::vector<Key> training() {
  constexpr auto in = &RunSpec::training;
  return {
      row<in, &Training::steps>("steps", "updates of the weights", {kPositive}),
      row<in, &Training::seq_len>("seq_len", "tokens of a sequence, or inputs of an mlp", {{1, 1 << 24}}),
      row<in, &Training::micro_batch_size>("micro_batch_size", "sequences that go through the model together",
                                           {{1, 1 << 20}}),
      row<in, &Training::global_batch_size>(
          "global_batch_size", "sequences of a step; 0: one micro-batch for each lane", {{0, 1 << 30}}),
      row<in, &Training::dtype>("dtype", "type of weights and activations; master weights are always fp32"),
      row<in, &Training::seed>("seed", "initial weights, order of samples and dropout follow from it",
                               {kCount}),
      row<in, &Training::max_norm>("max_norm", "gradients with a larger norm are scaled to it; 0: never",
                                   {{0, 1e9}}),
      row<in, &Training::max_bad_steps>(
          "max_bad_steps",
          "the run stops after this many steps in a row with a gradient that is "
          "not finite; in fp16 those that halve loss_scale do not count",
          {kPositive}),
      row<in, &Training::threads>(
          "threads", "threads of a worker; 0: as the environment says, or cores of the host / its workers",
          {{0, 4096}}),
      row<in, &Training::loss_scale>("loss_scale",
                                     "fixed factor of the loss; 0: found and adapted by the run",
                                     {.bounds = {0, 1e9}, .only_with = {kWithFp16}}),
      row<in, &Training::initial_loss_scale>(
          "initial_loss_scale", "first factor when it is adapted",
          {.bounds = {1, 1e9}, .only_with = {kWithFp16, kWithAdaptedScale}}),
      row<in, &Training::loss_scale_window>(
          "loss_scale_window", "good steps in a row that double the factor",
          {.bounds = kPositive, .only_with = {kWithFp16, kWithAdaptedScale}}),
      row<in, &Training::min_loss_scale>("min_loss_scale", "the factor is not halved below this",
                                         {.bounds = {.least = 0, .most = 1e9, .above_least = true},
                                          .only_with = {kWithFp16, kWithAdaptedScale}}),
  };
}

std::vector<Key> optimizer() {
  constexpr auto in = &RunSpec::optimizer;
  return {
      row<in, &Optimizer::name>("name", "rule of the update"),
      row<in, &Optimizer::lr>("lr", "highest learning rate of the run", {{0, 1000}}),
      row<in, &Optimizer::beta1>("beta1", "decay of the first moment",
                                 {.bounds = kBelowOne, .only_with = {kWithAdamW}}),
      row<in, &Optimizer::beta2>("beta2", "decay of the second moment",
                                 {.bounds = kBelowOne, .only_with = {kWithAdamW}}),
      row<in, &Optimizer::eps>(
          "eps", "added to the root of the second moment",
          {.bounds = {.least = 0, .most = 1, .above_least = true}, .only_with = {kWithAdamW}}),
      row<in, &Optimizer::weight_decay>(
          "weight_decay", "of AdamW decoupled, of SGD added to the gradient; norms and biases have none",
          {{0, 1000}}),
      row<in, &Optimizer::momentum>("momentum", "share of the last update that is kept",
                                    {.bounds = kBelowOne, .only_with = {{"optimizer.name", "sgd"}}}),
  };
}

std::vector<Key> lr_scheduler() {
  constexpr auto in = &RunSpec::lr_scheduler;
  return {
      row<in, &LrScheduler::warmup_steps>("warmup_steps", "steps over which the learning rate rises to lr",
                                          {kCount}),
      row<in, &LrScheduler::decay_type>("decay_type",
                                        "how it falls afterwards; wsd: stays, then falls linearly"),
      row<in, &LrScheduler::decay_ratio>(
          "decay_ratio",
          "share of the steps, at the end, in which it falls; 0: all after the "
          "warm-up, for wsd 0.1",
          {.bounds = kFraction, .only_with = {kWithDecay}}),
      row<in, &LrScheduler::min_lr_factor>(
          "min_lr_factor", "what it falls to, as a share of lr; the step after the last one would have it",
          {.bounds = kFraction, .only_with = {kWithDecay}}),
  };
}

std::vector<Key> parallelism() {
  constexpr auto in = &RunSpec::parallelism;
  using P = Parallelism;
  return {
      row<in, &P::data>("data", "data-parallel workers; -1: all that the other axes leave", {{-1, 1 << 20}}),
      row<in, &P::tensor>("tensor",
                          "workers that compute each layer together: 1, 2, 4, ...; -1: all that the other "
                          "axes leave, of which `data` is then 1 unless it is given",
                          {{-1, 1024}}),
      row<in, &P::pipeline>("pipeline",
                            "stages of the pipeline: workers that hold different layers; -1 as in `tensor`, "
                            "for one of the two",
                            {{-1, 1024}}),
      row<in, &P::schedule>("schedule",
                            "order of passes in the pipeline: naive, gpipe, 1f1b, interleaved, zbh1, zbv, or "
                            "the path of a .csv file (`lockstep schedule show --help`)",
                            {.only_with = {kWithStages}}),
      row<in, &P::virtual_stages>(
          "virtual_stages", "parts of the model that a stage holds, with schedule interleaved; zbv has 2",
          {.bounds = {1, 64}, .only_with = {kWithStages}}),
      row<in, &P::part_blocks>(
          "part_blocks",
          "blocks of each part of the pipeline, in order, where the embedding and the last "
          "norm count as blocks; empty: so that all parts cost about the same",
          {.bounds = {1, 10002}, .only_with = {kWithStages}}),
      row<in, &P::zero_stage>(
          "zero_stage",
          "what data-parallel workers share out: 0 nothing, 1 the optimizer's work and memory, 2 also the "
          "gradients, 3 also the weights",
          {{0, 3}}),
      row<in, &P::zero_scope>(
          "zero_scope",
          "among whom: world, all data-parallel workers; host, those of each host, so that every host has a "
          "copy and weights are fetched inside hosts",
          {.only_with = {kWithShares}}),
      row<in, &P::sequence_parallel>(
          "sequence_parallel",
          "between layers each tensor-parallel worker holds its share of the tokens only: less memory"),
      row<in, &P::recompute>("recompute",
                             "layers that compute their activations again: none, all, or n for every n-th"),
      row<in, &P::lanes>(
          "lanes", "pieces of the global batch, a power of two; 0: the data-parallel degree, rounded up",
          {{0, 1 << 20}}),
      row<in, &P::tensor_lanes>(
          "tensor_lanes",
          "pieces in which layers are computed, a power of two that `tensor` divides: runs with as many have "
          "the same bits; 0: as many as `tensor`",
          {{0, 1024}}),
      row<in, &P::lane_weights>("lane_weights",
                                "share of the lanes for each data-parallel worker; empty: equal shares",
                                {{0, 1e9}}),
      row<in, &P::rebalance_freq>("rebalance_freq",
                                  "steps after which lanes move from slow workers to fast ones; 0: never",
                                  {kCount}),
  };
}

std::vector<Key> zero() {
  constexpr auto in = &RunSpec::zero;
  return {
      row<in, &Zero::offload>(
          "offload",
          "where a worker keeps what the optimizer remembers of its share: none, in memory; disk, "
          "in a temporary file that is read ahead of the update and written behind it"),
      row<in, &Zero::offload_folder>("offload_folder",
                                     "folder of that file, on a disk of this host; empty: job.dump_folder",
                                     {.only_with = {{"zero.offload", "disk"}}}),
  };
}

std::vector<Key> comm() {
  constexpr auto in = &RunSpec::comm;
  return {
      row<in, &Comm::all_reduce>(
          "all_reduce", "how gradients are summed",
          {.choices = {"auto", "ring", "tree", "halving_doubling", "direct", "mesh", "hierarchical"}}),
      row<in, &Comm::exact>("exact", "one order of addition, whatever the number of workers"),
      row<in, &Comm::train_timeout_seconds>(
          "train_timeout_seconds",
          "how long workers wait for one that does not come, be it frozen, slow or saving weights",
          {{1, 1'000'000}}),
  };
}

std::vector<Key> checkpoint() {
  constexpr auto in = &RunSpec::checkpoint;
  return {
      row<in, &Checkpoint::enabled>("enabled",
                                    "save the whole state of the training, so that a run can go on exactly"),
      row<in, &Checkpoint::interval>(
          "interval",
          "steps between checkpoints; 0: only at the end, and when the run is "
          "stopped; auto or -1: as often as pays, by "
          "what one costs and mtbf_seconds",
          {.bounds = {-1, kMany}, .when_auto = -1, .only_with = {kWithCheckpoints}}),
      row<in, &Checkpoint::interval_seconds>("interval_seconds",
                                             "seconds between checkpoints; 0: not by time",
                                             {.bounds = {0, 1e9}, .only_with = {kWithCheckpoints}}),
      row<in, &Checkpoint::mtbf_seconds>(
          "mtbf_seconds", "time between failures of the whole cluster",
          {.bounds = {1, 1e9}, .only_with = {{"checkpoint.interval", "auto"}}}),
      row<in, &Checkpoint::keep_last>("keep_last", "newest checkpoints that are kept",
                                      {.bounds = kPositive, .only_with = {kWithCheckpoints}}),
      row<in, &Checkpoint::keep_every>("keep_every",
                                       "checkpoints of steps that this divides are kept for ever; 0: none",
                                       {.bounds = kCount, .only_with = {kWithCheckpoints}}),
      row<in, &Checkpoint::max_failures>("max_failures",
                                         "checkpoints in a row that could not be written and end the run",
                                         {.bounds = kPositive, .only_with = {kWithCheckpoints}}),
      row<in, &Checkpoint::resume>("resume",
                                   "go on where a checkpoint ends: auto, the newest good one of "
                                   "job.dump_folder, if there is one; or the "
                                   "path of a checkpoint or of the folder of a run; empty: begin anew"),
      row<in, &Checkpoint::initial_load_path>(
          "initial_load_path",
          "Hugging Face folder, checkpoint or folder of a run whose weights the run begins with"),
  };
}

std::vector<Key> elastic() {
  constexpr auto in = &RunSpec::elastic;
  return {
      row<in, &Elastic::enabled>("enabled",
                                 "when a worker that `lockstep train --workers` has started is killed or "
                                 "lost, the others go on, and it is started again"),
      row<in, &Elastic::min_workers>("min_workers", "fewer workers do not train, but wait for others",
                                     {.bounds = {1, kMaxWorld}, .only_with = {kWithElastic}}),
      row<in, &Elastic::max_workers>(
          "max_workers", "workers beyond so many wait until one is lost; 0: as many as the run begins with",
          {.bounds = {0, kMaxWorld}, .only_with = {kWithElastic}}),
      row<in, &Elastic::compare_freq>(
          "compare_freq", "steps between comparisons of the weights that several workers hold; 0: never",
          {kCount}),
      row<in, &Elastic::straggler_freq>(
          "straggler_freq", "steps between comparisons of how fast workers are; 0: never", {kCount}),
      row<in, &Elastic::straggler_factor>(
          "straggler_factor", "a worker that takes so many times as long as the others is a straggler",
          {.bounds = {1, 1e9}, .only_with = {kWithWatch}}),
      row<in, &Elastic::straggler_patience>("straggler_patience",
                                            "comparisons in a row after which a straggler is named",
                                            {.bounds = kPositive, .only_with = {kWithWatch}}),
      row<in, &Elastic::evict_stragglers>("evict_stragglers",
                                          "a straggler that is named has to leave, unless fewer than "
                                          "min_workers are left; a new process takes its place",
                                          {.only_with = {kWithElastic, kWithWatch}}),
      row<in, &Elastic::beat_timeout_seconds>("beat_timeout_seconds",
                                              "a worker whose process says nothing for so long is lost",
                                              {.bounds = {0.1, 1e9}, .only_with = {kWithElastic}}),
      row<in, &Elastic::stall_timeout_seconds>(
          "stall_timeout_seconds", "so is one that gets nowhere for so long and does not say that it waits",
          {.bounds = {0.1, 1e9}, .only_with = {kWithElastic}}),
      row<in, &Elastic::join_timeout_seconds>(
          "join_timeout_seconds",
          "a run with fewer than min_workers waits so long for others, then saves and ends with exit code 75",
          {.bounds = {0.1, 1e9}, .only_with = {kWithElastic}}),
      row<in, &Elastic::grace_seconds>(
          "grace_seconds",
          "a run that is asked to stop may take so long to save and end, then its workers are killed",
          {{0.1, 1e9}}),
      row<in, &Elastic::max_restarts>("max_restarts",
                                      "a worker is started again at most so many times within window_seconds",
                                      {.bounds = kCount, .only_with = {kWithElastic}}),
      row<in, &Elastic::window_seconds>("window_seconds", "time in which restarts are counted",
                                        {.bounds = {1, 1'000'000'000}, .only_with = {kWithElastic}}),
  };
}

std::vector<Key> validation() {
  constexpr auto in = &RunSpec::validation;
  return {
      row<in, &Validation::freq>(
          "freq", "steps between validation losses, which need data.validation; 0: never", {kCount}),
      row<in, &Validation::steps>("steps", "micro-batches of a validation loss", {{1, 1 << 30}}),
  };
}

std::vector<Key> metrics() {
  constexpr auto in = &RunSpec::metrics;
  return {
      row<in, &Metrics::log_freq>("log_freq", "steps between progress lines in a log", {kPositive}),
      row<in, &Metrics::enable_tensorboard>("enable_tensorboard", "write files for TensorBoard"),
      row<in, &Metrics::save_tb_folder>("save_tb_folder", "their folder, inside dump_folder"),
      row<in, &Metrics::enable_trace>(
          "enable_trace",
          "write when each worker computed and waited, as a file for ui.perfetto.dev (docs/parallelism.md)"),
  };
}

std::vector<Key> make_table() {
  std::vector<Key> table;
  const auto add = [&table](std::string_view section, std::vector<Key> keys) {
    for (Key& key : keys) {
      key.section = section;
      table.push_back(std::move(key));
    }
  };
  add("job", job());
  add("model", model());
  add("data", data());
  add("training", training());
  add("optimizer", optimizer());
  add("lr_scheduler", lr_scheduler());
  add("parallelism", parallelism());
  add("zero", zero());
  add("comm", comm());
  add("checkpoint", checkpoint());
  add("elastic", elastic());
  add("validation", validation());
  add("metrics", metrics());
  return table;
}

}  // namespace

std::span<const Key> all_keys() {
  static const std::vector<Key> table = make_table();
  return table;
}

}  // namespace lockstep::spec
