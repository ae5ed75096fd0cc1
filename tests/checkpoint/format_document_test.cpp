// SPDX-License-Identifier: Apache-2.0
//
// docs/formats/checkpoint.md shows a checkpoint as the program writes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/checkpoint/saved.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

// The text between ```LANGUAGE and ``` that follows `heading`.
std::string block_after(const std::string& document, const std::string& heading) {
  const std::size_t begin = document.find('\n', document.find("```", document.find(heading))) + 1;
  return document.substr(begin, document.find("```", begin) - begin);
}

TEST(FormatDocument, ShowsWhatIsWritten) {
  const test::TemporaryFolder folder;
  testing::HastyDisk disk;
  CheckpointStore store(folder.path("s"), disk);
  std::vector<testing::FullTensor> tensors = {{{"model.w", {2, 3}}, {0, 1, 2, 3, 4, 5}},
                                              {{"optimizer.m.w", {2, 3}}, {0, 0, 0, 0, 0, 0}}};
  Manifest manifest;
  manifest.progress = {.step = 100,
                       .data_position = 800,
                       .bad_steps = 0,
                       .bad_in_a_row = 0,
                       .loss_scale = 1,
                       .good_steps = 0,
                       .loss = 3.25};
  manifest.last_step = {
      .gradient_norm = 0.5, .learning_rate = 0.001, .loss_scale = 1, .seconds = 0.25, .updated = 1};
  manifest.lanes = 8;
  manifest.configuration = "[training]\nsteps = 200\n";
  manifest.data_digest = "5f0e";
  manifest.written_by = "2 workers, tensor 2";
  manifest.arithmetic = "AVX3, oneDNN 2.6.3 for avx512_core_bf16 (8d1c7f0b5e2a94c3f6071b2c3d4e5f60)";
  for (const auto& tensor : tensors) manifest.tensors.push_back(tensor.logical);
  testing::save(store, disk, tensors,
                {{{0, {0, 1, 3, 2}}, {1, {0, 1, 3, 2}}}, {{0, {1, 2, 3, 2}}, {1, {1, 2, 3, 2}}}}, manifest);

  const std::string document = test::read_file(LOCKSTEP_DOCS "/formats/checkpoint.md");
  const auto written = nlohmann::ordered_json::parse(folder.read("s/step-100/manifest.json"));
  EXPECT_EQ(nlohmann::ordered_json::parse(block_after(document, "## manifest.json")), written)
      << written.dump(2);
  EXPECT_EQ(block_after(document, "## COMMIT"), folder.read("s/step-100/COMMIT"));
  Checkpoint checkpoint(folder.path("s/step-100"));
  EXPECT_EQ(block_after(document, "## The hash of a checkpoint"), to_text(logical_hash(checkpoint)) + "\n");
  const std::string shard = folder.read("s/step-100/rank-1.safetensors");
  EXPECT_EQ(block_after(document, "## Shards"), shard.substr(8, shard.find("}}", 8) - 6) + "\n");
}

}  // namespace
}  // namespace lockstep::checkpoint
