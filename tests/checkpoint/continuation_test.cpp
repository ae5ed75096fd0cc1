// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/continuation.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/write.h"

namespace lockstep::checkpoint {
namespace {

Manifest manifest_of(const spec::RunSpec& saved) {
  Manifest manifest;
  manifest.configuration = spec::to_toml(saved);
  return manifest;
}

// Older versions let them be set, and now nobody could give them as they were.
TEST(Continuation, ASavedRunMayHaveKeysWithoutEffect) {
  const spec::RunSpec run = spec::parse_run("[lr_scheduler]\ndecay_type = \"constant\"", "run.toml");
  spec::RunSpec saved = run;
  saved.lr_scheduler.min_lr_factor = 0.3;
  saved.optimizer.momentum = 0.5;
  EXPECT_NO_THROW(require_same_training(run, manifest_of(saved), "c"));
  saved.lr_scheduler.decay_type = spec::DecayType::linear;
  EXPECT_THROW(require_same_training(run, manifest_of(saved), "c"), UsageError);
}

TEST(Continuation, TheHeadsOfAnMlpDoNotMatter) {
  const spec::RunSpec run = spec::parse_run("[model]\nname = \"mlp\"", "run.toml");
  spec::RunSpec saved = run;
  saved.model.heads = 3;
  saved.model.kv_heads = 3;
  EXPECT_NO_THROW(require_same_training(run, manifest_of(saved), "c"));
  saved.model.width = 100;
  EXPECT_THROW(require_same_training(run, manifest_of(saved), "c"), UsageError);
}

}  // namespace
}  // namespace lockstep::checkpoint
