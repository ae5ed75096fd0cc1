// SPDX-License-Identifier: Apache-2.0
//
// What to run, as plain data. The initial values are the defaults that users get; keys.cpp gives each member
// its name in a run file, its limits and its description. docs/configuration.md is made from the two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/dtype.h"

namespace lockstep::spec {

enum class ModelFamily { gpt, llama, mlp };
enum class RopeScaling { none, llama3 };
enum class Sharding { sample, batch, feature };
enum class OptimizerKind { adamw, sgd };
enum class DecayType { constant, linear, cosine, wsd };
enum class Offload { none, disk };
enum class ZeroScope { world, host };

struct Job {
  std::string dump_folder = "runs/default";
  std::string description = {};
  bool overwrite = false;
  bool operator==(const Job&) const = default;
};

// Zeros stand for what follows from other keys; a loaded run has none left (fill_model).
struct Model {
  ModelFamily name = ModelFamily::llama;
  std::string preset = {};
  std::int64_t layers = 6;
  std::int64_t width = 384;
  std::int64_t heads = 6;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t ffn_width = 0;
  std::int64_t vocab_size = 4096;
  std::int64_t max_seq_len = 0;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling = RopeScaling::none;
  double rope_factor = 8.0;
  double rope_low_freq_factor = 1.0;
  double rope_high_freq_factor = 4.0;
  std::int64_t rope_original_seq_len = 8192;
  double norm_eps = 1e-5;
  bool tied_embeddings = true;
  double dropout = 0.0;
  bool operator==(const Model&) const = default;
};

struct Corpus {
  std::string path;
  double weight = 1.0;  // its share in what is drawn, relative to the others
  bool operator==(const Corpus&) const = default;
};

struct Data {
  std::vector<Corpus> train = {};
  std::vector<Corpus> validation = {};
  std::string tokenizer = {};
  Sharding sharding = Sharding::sample;
  bool operator==(const Data&) const = default;
};

struct Training {
  std::int64_t steps = 600;
  std::int64_t seq_len = 256;
  std::int64_t micro_batch_size = 8;
  std::int64_t global_batch_size = 0;
  DType dtype = DType::fp32;
  std::int64_t seed = 1;
  double max_norm = 1.0;
  std::int64_t max_bad_steps = 10;
  std::int64_t threads = 0;
  double loss_scale = 0.0;
  double initial_loss_scale = 65536.0;
  std::int64_t loss_scale_window = 2000;
  double min_loss_scale = 1.0;
  bool operator==(const Training&) const = default;
};

struct Optimizer {
  OptimizerKind name = OptimizerKind::adamw;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double momentum = 0.9;
  bool operator==(const Optimizer&) const = default;
};

struct LrScheduler {
  std::int64_t warmup_steps = 0;
  DecayType decay_type = DecayType::cosine;
  double decay_ratio = 0.0;
  double min_lr_factor = 0.1;
  bool operator==(const LrScheduler&) const = default;
};

struct Parallelism {
  std::int64_t data = -1;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::string schedule = "1f1b";
  std::int64_t virtual_stages = 1;
  std::vector<double> part_blocks = {};
  std::int64_t zero_stage = 1;
  ZeroScope zero_scope = ZeroScope::world;
  bool sequence_parallel = false;
  std::string recompute = "none";
  std::int64_t lanes = 0;
  std::int64_t tensor_lanes = 0;
  std::vector<double> lane_weights = {};
  std::int64_t rebalance_freq = 0;
  bool operator==(const Parallelism&) const = default;
};

struct Zero {
  Offload offload = Offload::none;
  std::string offload_folder = {};
  bool operator==(const Zero&) const = default;
};

struct Comm {
  std::string all_reduce = "auto";
  bool exact = true;
  std::int64_t train_timeout_seconds = 300;
  bool operator==(const Comm&) const = default;
};

struct Checkpoint {
  bool enabled = true;
  std::int64_t interval = 0;
  double interval_seconds = 0;
  double mtbf_seconds = 10800;
  std::int64_t keep_last = 2;
  std::int64_t keep_every = 0;
  std::int64_t max_failures = 5;
  std::string resume = {};
  std::string initial_load_path = {};
  bool operator==(const Checkpoint&) const = default;
};

struct Elastic {
  bool enabled = true;
  std::int64_t min_workers = 1;
  std::int64_t max_workers = 0;
  std::int64_t compare_freq = 100;
  std::int64_t straggler_freq = 100;
  double straggler_factor = 2;
  std::int64_t straggler_patience = 3;
  bool evict_stragglers = false;
  double beat_timeout_seconds = 10;
  double stall_timeout_seconds = 60;
  double join_timeout_seconds = 60;
  double grace_seconds = 300;
  std::int64_t max_restarts = 10;
  std::int64_t window_seconds = 3600;
  bool operator==(const Elastic&) const = default;
};

struct Validation {
  std::int64_t freq = 0;
  std::int64_t steps = 10;
  bool operator==(const Validation&) const = default;
};

struct Metrics {
  std::int64_t log_freq = 1;
  bool enable_tensorboard = true;
  std::string save_tb_folder = "tensorboard";
  bool enable_trace = false;
  bool operator==(const Metrics&) const = default;
};

struct RunSpec {
  Job job;
  Model model;
  Data data;
  Training training;
  Optimizer optimizer;
  LrScheduler lr_scheduler;
  Parallelism parallelism;
  Zero zero;
  Comm comm;
  Checkpoint checkpoint;
  Elastic elastic;
  Validation validation;
  Metrics metrics;
  bool operator==(const RunSpec&) const = default;
};

}  // namespace lockstep::spec
