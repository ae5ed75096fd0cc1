// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/combinations.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/kernels/float16.h"

namespace lockstep::kernels {
namespace {

constexpr std::size_t kGuard = 64;

template <typename T>
void put(Buffer& buffer, std::size_t index, T value) {
  std::memcpy(buffer.data() + index * sizeof(T), &value, sizeof(T));
}

void put_ordinary(Buffer& buffer, std::size_t index, DType dtype, double value) {
  switch (dtype) {
    case DType::fp32:
      return put(buffer, index, static_cast<float>(value));
    case DType::bf16:
      return put(buffer, index, bf16_of_float(static_cast<float>(value)));
    case DType::fp16:
      return put(buffer, index, fp16_of_float(static_cast<float>(value)));
    case DType::fp64:
      return put(buffer, index, value);
    case DType::int32:
      return put(buffer, index, static_cast<std::int32_t>(value));
    case DType::int64:
      return put(buffer, index, static_cast<std::int64_t>(value));
    case DType::uint8:
      return put(buffer, index, static_cast<std::uint8_t>(value > 0 ? value : -value));
  }
}

void append_balanced(std::vector<std::uint8_t>& merges, std::size_t leaves) {
  if (leaves == 1) return merges.push_back(0);
  const std::size_t left = std::bit_floor(leaves - 1);
  append_balanced(merges, left);
  append_balanced(merges, leaves - left);
  ++merges.back();
}

// One run of the case: its memory, with guard bytes around every buffer.
struct Run {
  std::vector<Buffer> memory;
  std::vector<Operand> operands;
  std::vector<std::byte*> destinations;
};

Run lay_out(const Case& test_case, const std::vector<Buffer>& inputs) {
  const std::size_t bytes = test_case.elements * size_of(test_case.how.dtype);
  const auto room = [&](std::size_t offset) {
    return Buffer(kGuard + offset + bytes + kGuard, std::byte{0xA5});
  };
  Run run;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Buffer& buffer = run.memory.emplace_back(room(test_case.placement.operand_offset));
    std::byte* data = buffer.data() + kGuard + test_case.placement.operand_offset;
    std::copy(inputs[i].begin(), inputs[i].end(), data);
    run.operands.push_back({.data = data, .merges = test_case.merges[i]});
    if (i < test_case.in_place) run.destinations.push_back(data);
  }
  while (run.destinations.size() < test_case.destinations) {
    Buffer& buffer = run.memory.emplace_back(room(test_case.placement.destination_offset));
    run.destinations.push_back(buffer.data() + kGuard + test_case.placement.destination_offset);
  }
  return run;
}

std::string describe(const Case& c) {
  return fmt::format(
      "{} {} / {} of {} operands, {} elements, {} destinations, {} in place, offsets {} and {}",
      name_of(c.how.dtype), name_of(c.how.op), c.how.divide_by, c.merges.size(), c.elements, c.destinations,
      c.in_place, c.placement.operand_offset, c.placement.destination_offset);
}

}  // namespace

Buffer random_elements(std::mt19937_64& random, DType dtype, std::size_t elements) {
  Buffer buffer(elements * size_of(dtype));
  for (std::byte& byte : buffer) byte = static_cast<std::byte>(random());
  std::uniform_real_distribution<double> ordinary(-100.0, 100.0);
  for (std::size_t i = 0; i < elements; i += 3) put_ordinary(buffer, i, dtype, ordinary(random));
  return buffer;
}

std::vector<std::uint8_t> balanced_merges(std::size_t leaves) {
  std::vector<std::uint8_t> merges;
  append_balanced(merges, leaves);
  return merges;
}

std::vector<std::uint8_t> left_merges(std::size_t leaves) {
  std::vector<std::uint8_t> merges(leaves, 1);
  merges.front() = 0;
  return merges;
}

std::vector<std::uint8_t> right_merges(std::size_t leaves) {
  std::vector<std::uint8_t> merges(leaves, 0);
  merges.back() = static_cast<std::uint8_t>(leaves - 1);
  return merges;
}

std::vector<std::uint8_t> random_merges(std::mt19937_64& random, std::size_t leaves) {
  std::vector<std::uint8_t> merges;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < leaves; ++i) {
    const bool last = i + 1 == leaves;
    const std::size_t merge = last ? depth : random() % (std::min<std::size_t>(depth, 255) + 1);
    merges.push_back(static_cast<std::uint8_t>(merge));
    depth = depth + 1 - merge;
  }
  return merges;
}

void expect_same_as_reference(const Case& test_case, std::mt19937_64& random) {
  std::vector<Buffer> inputs;
  for (std::size_t i = 0; i < test_case.merges.size(); ++i) {
    inputs.push_back(random_elements(random, test_case.how.dtype, test_case.elements));
  }
  Run fast = lay_out(test_case, inputs);
  Run plain = lay_out(test_case, inputs);
  combine(test_case.how, fast.operands, fast.destinations, test_case.elements);
  combine_reference(test_case.how, plain.operands, plain.destinations, test_case.elements);
  for (std::size_t i = 0; i < fast.memory.size(); ++i) {
    const auto [at, _] = std::mismatch(fast.memory[i].begin(), fast.memory[i].end(), plain.memory[i].begin());
    if (at == fast.memory[i].end()) continue;
    FAIL() << describe(test_case) << ": buffer " << i << " differs from byte "
           << (at - fast.memory[i].begin()) - static_cast<std::ptrdiff_t>(kGuard);
  }
}

}  // namespace lockstep::kernels
