// SPDX-License-Identifier: Apache-2.0
//
// What plan/ predicts that blocks keep, beside what they allocate.
#include "lockstep/plan/block_memory.h"

#include <atomic>
#include <cstddef>
#include <cstring>

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include "lockstep/model/parameters.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/spec/load.h"
#include "lockstep/train/model_of.h"

namespace lockstep::train {
namespace {

// Bytes in the tensors of this process, while a CountedAllocations lives.
std::atomic<std::int64_t> counted{0};

struct Counted {
  at::DataPtr memory;
  std::int64_t bytes;
};

void uncount(void* context) {
  auto* one = static_cast<Counted*>(context);
  counted -= one->bytes;
  delete one;
}

// libtorch 1.x and the first 2.x want a const allocate(), later ones another and copy_data(): what is not
// asked for is a function like any other, and so nothing here says `override`.
class CountingAllocator final : public at::Allocator {
 public:
  at::DataPtr allocate(std::size_t bytes) const { return counted_memory(bytes); }
  at::DataPtr allocate(std::size_t bytes) { return counted_memory(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  at::DeleterFnPtr raw_deleter() const { return nullptr; }

 private:
  static at::DataPtr counted_memory(std::size_t bytes) {
    auto* one = new Counted{c10::GetDefaultCPUAllocator()->allocate(bytes), static_cast<std::int64_t>(bytes)};
    counted += one->bytes;
    return {one->memory.get(), one, uncount, at::kCPU};
  }
};

class CountedAllocations {
 public:
  CountedAllocations() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(&counting_, 1); }
  CountedAllocations(const CountedAllocations&) = delete;
  CountedAllocations& operator=(const CountedAllocations&) = delete;
  ~CountedAllocations() { c10::SetCPUAllocator(before_, 1); }

 private:
  at::Allocator* before_;
  CountingAllocator counting_;
};

spec::RunSpec run_of(const std::string& family, const std::string& dtype, const std::string& dropout) {
  const std::string shape = family == "mlp"     ? ""
                            : family == "llama" ? "heads = 6\nkv_heads = 2\nffn_width = 200\n"
                                                : "heads = 6\nffn_width = 200\n";
  return spec::parse_run("[model]\n" + shape + R"(
      layers = 2
      width = 96
      vocab_size = 61
      max_seq_len = 40
      [data]
      train = ["corpus"]
      [training]
      seq_len = 40
      micro_batch_size = 3)",
                         "run.toml",
                         std::vector<std::string>{"--model.name", family, "--training.dtype", dtype,
                                                  "--model.dropout", dropout});
}

model::Batch batch_of(const spec::RunSpec& run) {
  const std::int64_t rows = run.training.micro_batch_size;
  model::Batch batch;
  batch.samples = {.seed = 1, .numbers = {0, 1, 2}};
  if (run.model.name == spec::ModelFamily::mlp) {
    batch.features = at::randn({rows, run.model.max_seq_len});
    batch.targets = at::randint(0, 61, {rows}, at::kInt);
  } else {
    batch.tokens = at::randint(0, 61, {rows, run.training.seq_len}, at::kInt);
    batch.targets = batch.tokens;
  }
  return batch;
}

void expect_as_predicted(const spec::RunSpec& run) {
  const model::Model model = model_of(run.model);
  const model::FlatLayout layout(model);
  const at::Tensor values = at::zeros({layout.elements()}, nn::scalar_type_of(run.training.dtype));
  const model::Parameters parameters(layout, values, at::zeros({layout.elements()}, at::kFloat));
  const model::Batch batch = batch_of(run);
  const std::vector<schedule::BlockMemory> expected = plan::block_memory(run);
  ASSERT_EQ(expected.size(), model.blocks.size());

  const CountedAllocations counting;
  std::vector<model::BlockPass> passes;
  at::Tensor hidden;
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const std::int64_t before = counted;
    passes.push_back(model::forward(*model.blocks[i], hidden, batch, parameters.of_block(i)));
    hidden = passes.back().output.detach();
    EXPECT_EQ(counted - before, expected[i].output + expected[i].inner) << "block " << i;
  }
}

TEST(BlockMemory, IsWhatBlocksAllocate) {
  for (const char* dtype : {"fp32", "bf16"}) {
    for (const char* dropout : {"0", "0.1"}) {
      for (const char* family : {"gpt", "llama", "mlp"}) {
        SCOPED_TRACE(std::string(family) + " " + dtype + " " + dropout);
        expect_as_predicted(run_of(family, dtype, dropout));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::train
