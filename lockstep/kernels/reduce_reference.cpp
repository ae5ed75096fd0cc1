// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernels/float16.h"
#include "lockstep/kernels/merge_plan.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {
namespace {

template <typename T>
T quiet_nan() {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(kNanFp32);
  } else {
    return std::bit_cast<double>(kNanFp64);
  }
}

template <typename T>
T combined_floats(ReduceOp op, T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return quiet_nan<T>();
  const bool a_first = a < b || (a == b && std::signbit(a));
  T value = 0;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      value = a + b;
      break;
    case ReduceOp::min:
      return a_first ? a : b;
    case ReduceOp::max:
      return a_first ? b : a;
    case ReduceOp::product:
      value = a * b;
      break;
  }
  return std::isnan(value) ? quiet_nan<T>() : value;
}

template <typename T>
T combined_integers(ReduceOp op, T a, T b) {
  const auto wide_a = static_cast<std::uint64_t>(a);
  const auto wide_b = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      return static_cast<T>(wide_a + wide_b);
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::max:
      return a < b ? b : a;
    case ReduceOp::product:
      return static_cast<T>(wide_a * wide_b);
  }
  return a;
}

template <typename T>
T divided_floats(T value, std::size_t divisor) {
  return std::isnan(value) ? quiet_nan<T>() : value / static_cast<T>(divisor);
}

template <typename T>
T divided_integers(T value, std::size_t divisor) {
  const auto wide = static_cast<std::uint64_t>(value);
  if (value >= 0) return static_cast<T>(wide / divisor);
  return static_cast<T>(0 - (0 - wide) / divisor);
}

// What is stored for an element of each dtype, and how it is combined.
template <typename T>
struct PlainElement {
  using Stored = T;
  static T combined(ReduceOp op, T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return combined_floats(op, a, b);
    else
      return combined_integers(op, a, b);
  }
  static T divided(T value, std::size_t divisor) {
    if constexpr (std::is_floating_point_v<T>)
      return divided_floats(value, divisor);
    else
      return divided_integers(value, divisor);
  }
};

template <float (*widened)(std::uint16_t), std::uint16_t (*narrowed)(float)>
struct SmallFloatElement {
  using Stored = std::uint16_t;
  static Stored combined(ReduceOp op, Stored a, Stored b) {
    return narrowed(combined_floats(op, widened(a), widened(b)));
  }
  static Stored divided(Stored value, std::size_t divisor) {
    return narrowed(divided_floats(widened(value), divisor));
  }
};

template <typename Element>
void combine_elements(const Combination& how, std::span<const Operand> operands,
                      std::span<std::byte* const> destinations, std::size_t elements) {
  using Stored = typename Element::Stored;
  std::vector<Stored> stack;
  for (std::size_t i = 0; i < elements; ++i) {
    for (const Operand& operand : operands) {
      std::memcpy(&stack.emplace_back(), operand.data + i * sizeof(Stored), sizeof(Stored));
      for (unsigned merge = 0; merge < operand.merges; ++merge) {
        const Stored upper = stack.back();
        stack.pop_back();
        stack.back() = Element::combined(how.op, stack.back(), upper);
      }
    }
    const Stored value = how.divide_by == 1 ? stack.back() : Element::divided(stack.back(), how.divide_by);
    stack.pop_back();
    for (std::byte* destination : destinations) {
      std::memcpy(destination + i * sizeof(Stored), &value, sizeof(Stored));
    }
  }
}

}  // namespace

void combine_reference(const Combination& how, std::span<const Operand> operands,
                       std::span<std::byte* const> destinations, std::size_t elements) {
  LOCKSTEP_CHECK(how.divide_by >= 1, "a combination divides by zero");
  partial_values(operands);  // checks them
  switch (how.dtype) {
    case DType::fp32:
      return combine_elements<PlainElement<float>>(how, operands, destinations, elements);
    case DType::bf16:
      return combine_elements<SmallFloatElement<float_of_bf16, bf16_of_float>>(how, operands, destinations,
                                                                               elements);
    case DType::fp16:
      return combine_elements<SmallFloatElement<float_of_fp16, fp16_of_float>>(how, operands, destinations,
                                                                               elements);
    case DType::fp64:
      return combine_elements<PlainElement<double>>(how, operands, destinations, elements);
    case DType::int32:
      return combine_elements<PlainElement<std::int32_t>>(how, operands, destinations, elements);
    case DType::int64:
      return combine_elements<PlainElement<std::int64_t>>(how, operands, destinations, elements);
    case DType::uint8:
      return combine_elements<PlainElement<std::uint8_t>>(how, operands, destinations, elements);
  }
}

}  // namespace lockstep::kernels
