// SPDX-License-Identifier: Apache-2.0
//
// The reduction kernels against memcpy and against the loop a compiler vectorizes by itself. Bytes per second
// count every byte read and written once, so the figures of one size can be compared.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {
namespace {

// Aligned like an arena of a transport, and touched, so that no page fault is measured.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(4096, rounded(bytes)))) {
    std::memset(data_.get(), 0, rounded(bytes));
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  static std::size_t rounded(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

  std::unique_ptr<std::byte, Free> data_;
};

std::vector<Memory> memories(std::size_t count, std::size_t bytes) {
  std::vector<Memory> made;
  for (std::size_t i = 0; i < count; ++i) made.emplace_back(bytes);
  return made;
}

void report(benchmark::State& state, std::size_t bytes, std::size_t streams) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes * streams));
}

void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto memory = memories(2, bytes);
  while (state.KeepRunning()) {
    std::memcpy(memory[0].data(), memory[1].data(), bytes);
    benchmark::ClobberMemory();
  }
  report(state, bytes, 2);
}

void plain_loop_fp32_in_place(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto memory = memories(2, bytes);
  auto* a = reinterpret_cast<float*>(memory[0].data());
  auto* b = reinterpret_cast<float*>(memory[1].data());
  while (state.KeepRunning()) {
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) a[i] = b[i] = a[i] + b[i];
    benchmark::ClobberMemory();
  }
  report(state, bytes, 4);
}

struct Shape {
  Combination how;
  std::size_t operands = 2;
  std::size_t in_place = 0;  // destinations that are operands
  std::size_t apart = 0;     // destinations that are not
  std::size_t offset = 0;    // bytes from an aligned address
};

std::vector<std::uint8_t> perfect_tree(std::size_t leaves) {
  std::vector<std::uint8_t> merges;
  for (std::size_t leaf = 1; leaf <= leaves; ++leaf) {
    std::uint8_t merge = 0;
    for (std::size_t rest = leaf; rest % 2 == 0; rest /= 2) ++merge;
    merges.push_back(merge);
  }
  return merges;
}

void combined(benchmark::State& state, const Shape& shape) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto memory = memories(shape.operands + shape.apart, bytes + shape.offset);
  const auto merges = perfect_tree(shape.operands);
  std::vector<Operand> operands;
  std::vector<std::byte*> destinations;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    std::byte* data = memory[i].data() + shape.offset;
    if (i < shape.operands) operands.push_back({.data = data, .merges = merges[i]});
    if (i < shape.in_place || i >= shape.operands) destinations.push_back(data);
  }
  while (state.KeepRunning()) {
    combine(shape.how, operands, destinations, bytes / size_of(shape.how.dtype));
    benchmark::ClobberMemory();
  }
  report(state, bytes, shape.operands + destinations.size());
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(4 << 10)->Arg(256 << 10)->Arg(64 << 20);
}

BENCHMARK(copy)->Apply(sizes);
BENCHMARK(plain_loop_fp32_in_place)->Apply(sizes);

#define LOCKSTEP_SHAPE(name, ...) BENCHMARK_CAPTURE(combined, name, Shape __VA_ARGS__)->Apply(sizes)

LOCKSTEP_SHAPE(fp32_two_both_in_place, {.how = {}, .in_place = 2});
LOCKSTEP_SHAPE(fp32_two_unaligned, {.how = {}, .in_place = 2, .offset = 4});
LOCKSTEP_SHAPE(fp32_two_one_in_place, {.how = {}, .in_place = 1});
LOCKSTEP_SHAPE(fp32_two_apart, {.how = {}, .apart = 1});
LOCKSTEP_SHAPE(fp32_four, {.how = {}, .operands = 4, .in_place = 1});
LOCKSTEP_SHAPE(fp32_eight, {.how = {}, .operands = 8, .in_place = 1});
LOCKSTEP_SHAPE(fp32_sixteen, {.how = {}, .operands = 16, .in_place = 1});
LOCKSTEP_SHAPE(fp32_average_of_two, {.how = {.divide_by = 2}, .in_place = 2});
LOCKSTEP_SHAPE(fp32_average_of_three, {.how = {.divide_by = 3}, .in_place = 2});
LOCKSTEP_SHAPE(fp32_max_of_two, {.how = {.op = ReduceOp::max}, .in_place = 2});
LOCKSTEP_SHAPE(bf16_two_both_in_place, {.how = {.dtype = DType::bf16}, .in_place = 2});
LOCKSTEP_SHAPE(bf16_two_one_in_place, {.how = {.dtype = DType::bf16}, .in_place = 1});
LOCKSTEP_SHAPE(bf16_four, {.how = {.dtype = DType::bf16}, .operands = 4, .in_place = 1});
LOCKSTEP_SHAPE(bf16_eight, {.how = {.dtype = DType::bf16}, .operands = 8, .in_place = 1});
LOCKSTEP_SHAPE(fp16_two_both_in_place, {.how = {.dtype = DType::fp16}, .in_place = 2});
LOCKSTEP_SHAPE(fp64_two_both_in_place, {.how = {.dtype = DType::fp64}, .in_place = 2});
LOCKSTEP_SHAPE(int64_two_both_in_place, {.how = {.dtype = DType::int64}, .in_place = 2});
LOCKSTEP_SHAPE(uint8_product_of_two,
               {.how = {.dtype = DType::uint8, .op = ReduceOp::product}, .in_place = 2});
LOCKSTEP_SHAPE(copy_to_one, {.how = {}, .operands = 1, .apart = 1});
LOCKSTEP_SHAPE(copy_to_three, {.how = {}, .operands = 1, .apart = 3});

}  // namespace
}  // namespace lockstep::kernels

BENCHMARK_MAIN();
