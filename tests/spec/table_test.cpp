// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/key.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/write.h"

#include "tests/support/error_of.h"

namespace lockstep::spec {
namespace {

TEST(Table, NamesEveryKeyOnceAndKeepsSectionsTogether) {
  std::set<std::string> names;
  std::set<std::string_view> sections;
  std::string_view section;
  for (const Key& key : all_keys()) {
    EXPECT_TRUE(names.insert(key.full_name()).second) << key.full_name();
    EXPECT_EQ(find_key(key.full_name()), &key);
    EXPECT_FALSE(key.help.empty()) << key.full_name();
    if (key.section != section) {
      EXPECT_TRUE(sections.insert(key.section).second) << key.section;
    }
    section = key.section;
  }
}

std::string flag_of(const Key& key, std::string_view value) {
  return fmt::format("--{}={}", key.full_name(), value);
}

TEST(Table, HasConditionsThatCanHold) {
  for (const Key& key : all_keys()) {
    for (const Condition& condition : key.accepted.only_with) {
      const Key* other = find_key(condition.key);
      ASSERT_NE(other, nullptr) << key.full_name();
      const std::vector<std::string> flags = {flag_of(*other, condition.value)};
      EXPECT_EQ(text_of(*other, read_flags(flags).front().value), condition.value) << key.full_name();
    }
  }
}

// Something else than the default.
Value changed_value(const Key& key) {
  Value changed = default_of(key);
  if (bool* flag = std::get_if<bool>(&changed)) *flag = !*flag;
  if (auto* number = std::get_if<std::int64_t>(&changed)) *number += 1;
  if (auto* number = std::get_if<double>(&changed)) *number += 1.0;
  if (auto* list = std::get_if<std::vector<double>>(&changed)) list->push_back(1.0);
  if (auto* list = std::get_if<std::vector<Corpus>>(&changed)) list->push_back({"a"});
  if (auto* text = std::get_if<std::string>(&changed)) {
    *text = key.accepted.choices.empty() ? "x" : std::string(key.accepted.choices.back());
    if (changed == default_of(key)) *text = std::string(key.accepted.choices.front());
  }
  return changed;
}

// For a run that breaks `condition` and keeps the others.
std::vector<std::string> flags_that_break(const Condition& condition, const Key& key) {
  std::vector<std::string> flags;
  for (const Condition& one : key.accepted.only_with) {
    const Key& other = *find_key(one.key);
    if (&one == &condition && one.other_than) flags.push_back(flag_of(other, one.value));
    if (&one != &condition && !one.other_than) flags.push_back(flag_of(other, one.value));
    if (&one == &condition && !one.other_than && holds(one, RunSpec{}))
      flags.push_back(flag_of(other, text_of(other, changed_value(other))));
  }
  return flags;
}

TEST(Table, EveryConditionIsAskedFor) {
  for (const Key& key : all_keys()) {
    for (const Condition& condition : key.accepted.only_with) {
      std::vector<std::string> flags = flags_that_break(condition, key);
      EXPECT_NO_THROW(parse_run("", "", flags)) << key.full_name();
      Value value = changed_value(key);
      if (why_refused(key, value)) value = key.accepted.bounds.most / 2;  // of a share
      flags.push_back(flag_of(key, text_of(key, value)));
      EXPECT_THAT(test::error_of<UsageError>([&] { parse_run("", "", flags); }),
                  ::testing::HasSubstr(fmt::format(" has no effect with {} = ", condition.key)))
          << key.full_name();
    }
  }
}

// A key that does nothing in some runs says so by a condition; here are those that always do, and why.
TEST(Table, EveryKeyHasAConditionOrAReasonToHaveNone) {
  const std::map<std::string, std::set<std::string>> reasons = {
      {"every run has one",
       {"job.dump_folder",
        "job.description",
        "job.overwrite",
        "model.name",
        "model.preset",
        "model.layers",
        "model.width",
        "model.vocab_size",
        "model.max_seq_len",
        "model.dropout",
        "data.train",
        "data.sharding",
        "training.steps",
        "training.seq_len",
        "training.micro_batch_size",
        "training.global_batch_size",
        "training.dtype",
        "training.seed",
        "training.max_norm",
        "training.max_bad_steps",
        "training.threads",
        "optimizer.name",
        "optimizer.lr",
        "optimizer.weight_decay",
        "lr_scheduler.warmup_steps",
        "lr_scheduler.decay_type",
        "parallelism.recompute",
        "parallelism.lanes",
        "parallelism.tensor_lanes",
        "zero.offload",
        "metrics.log_freq",
        "metrics.enable_tensorboard",
        "metrics.enable_trace"}},
      {"whether there are several workers is not known before they are started",
       {"parallelism.data", "parallelism.tensor", "parallelism.pipeline", "parallelism.zero_stage",
        "parallelism.lane_weights", "parallelism.rebalance_freq", "comm.all_reduce", "comm.exact",
        "comm.train_timeout_seconds"}},
      {"also of workers that do not go on without each other",
       {"elastic.enabled", "elastic.compare_freq", "elastic.straggler_freq", "elastic.grace_seconds"}},
      {"a run may begin with another and save nothing",
       {"checkpoint.enabled", "checkpoint.resume", "checkpoint.initial_load_path"}},
      {"a frequency of 0 says that none are wanted for now: check_validation() looks at what is given",
       {"data.validation", "validation.freq", "validation.steps"}},
      {"it is refused, and not only without effect", {"parallelism.sequence_parallel"}},
      {"a run that is written over has its files there, whether or not the new one writes any",
       {"metrics.save_tb_folder"}},
  };
  std::set<std::string> listed;
  for (const auto& [reason, keys] : reasons) listed.insert(keys.begin(), keys.end());
  for (const Key& key : all_keys()) {
    EXPECT_EQ(key.accepted.only_with.empty(), listed.erase(key.full_name()) == 1)
        << key.full_name() << ": give it a condition, or say here why it has none";
  }
  EXPECT_THAT(listed, ::testing::IsEmpty()) << "there are no such keys";
}

// Two rows that reach the same member would show here.
TEST(Table, SetsExactlyTheMemberThatItGets) {
  for (const Key& key : all_keys()) {
    RunSpec run;
    const Value changed = changed_value(key);
    key.set(run, changed);
    for (const Key& other : all_keys()) {
      EXPECT_EQ(other.get(run), &other == &key ? changed : default_of(other)) << other.full_name();
    }
  }
}

TEST(Table, AcceptsItsOwnDefaults) {
  EXPECT_NO_THROW(parse_run(to_toml(RunSpec{}), "defaults.toml"));
}

TEST(ConfigurationPage, IsMadeFromTheTable) {
  std::ifstream file(LOCKSTEP_CONFIGURATION_PAGE, std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(page, configuration_reference())
      << "make it again: configuration_reference > docs/configuration.md";
}

}  // namespace
}  // namespace lockstep::spec
