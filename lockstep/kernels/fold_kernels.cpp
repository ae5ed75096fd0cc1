// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/fold_kernels.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "lockstep/base/error.h"

// Processors without vectors get plain scalars, which compile faster than emulated vectors and run as fast.
#define HWY_BROKEN_EMU128 1
// SSSE3 alone is older than any machine in use; vectors of unknown size (SVE) cannot be kept in pairs.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/fold_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lockstep/kernels/fold_codecs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {

constexpr std::size_t kUnroll = 4;
constexpr std::size_t kMaxUnrolledOperands = 2;  // with more, the unrolled loop runs out of registers
constexpr std::size_t kMaxVectorBytes = 64;
constexpr std::size_t kMinBytesToAlign = 16384;

// The first or last few bytes of a sweep.
struct Edge {
  std::size_t offset;
  std::size_t bytes;
};

// The perfect tree over kOperands operands; not rounded.
template <typename Codec, typename Op, std::size_t kOperands>
HWY_INLINE typename Codec::Value folded(const std::byte* const* operands, std::size_t offset) {
  if constexpr (kOperands == 1) {
    return Codec::load(operands[0] + offset);
  } else {
    constexpr std::size_t kHalf = kOperands / 2;
    auto lower = folded<Codec, Op, kHalf>(operands, offset);
    auto upper = folded<Codec, Op, kHalf>(operands + kHalf, offset);
    if constexpr (kHalf > 1) {
      lower = Codec::rounded(lower);
      upper = Codec::rounded(upper);
    }
    return Codec::template apply<Op>(lower, upper);
  }
}

template <typename Codec>
HWY_INLINE void store_all(typename Codec::Value value, Outputs out, std::size_t offset) {
  Codec::store(value, out.first + offset);
  if (out.second != nullptr) Codec::store(value, out.second + offset);
}

// Fewer bytes than a vector holds, through padded copies.
template <typename Codec, std::size_t kOperands, typename ValueAt>
HWY_NOINLINE void sweep_edge(const std::byte* const* operands, Outputs out, Edge edge, ValueAt value_at) {
  alignas(kMaxVectorBytes) std::array<std::array<std::byte, kMaxVectorBytes>, kOperands> padded{};
  std::array<const std::byte*, kOperands> sources;
  for (std::size_t i = 0; i < kOperands; ++i) {
    std::memcpy(padded[i].data(), operands[i] + edge.offset, edge.bytes);
    sources[i] = padded[i].data();
  }
  store_all<Codec>(value_at(sources.data(), 0), {.first = padded[0].data()}, 0);
  std::memcpy(out.first + edge.offset, padded[0].data(), edge.bytes);
  if (out.second != nullptr) std::memcpy(out.second + edge.offset, padded[0].data(), edge.bytes);
}

// How many bytes lie before the first output's next multiple of the vector size: 0 where going there does not
// pay or the elements themselves are not aligned. In place, with the same offset in each buffer as chunks
// have, whole vectors then cross no cache line, which takes a quarter off the time in the first-level cache.
HWY_INLINE std::size_t bytes_to_alignment(const std::byte* out, std::size_t step, std::size_t bytes,
                                          std::size_t element_bytes) {
  const std::size_t head = (0 - reinterpret_cast<std::uintptr_t>(out)) % step;
  return bytes >= kMinBytesToAlign && head % element_bytes == 0 ? head : 0;
}

// `value_at(sources, offset)` gives the value of one vector. Stores are ordinary: non-temporal ones gained
// only where no output is an operand and the message exceeds all caches (up to 28 % at 16 MiB, nothing at
// 4 MiB), and exchanges work in place, where they lose.
template <typename Codec, std::size_t kOperands, typename ValueAt>
HWY_INLINE void sweep(const std::byte* const* operands, Outputs out, std::size_t bytes, ValueAt value_at,
                      std::size_t element_bytes) {
  const std::size_t step = Codec::elements() * element_bytes;
  std::size_t offset = bytes_to_alignment(out.first, step, bytes, element_bytes);
  if (offset > 0) sweep_edge<Codec, kOperands>(operands, out, {.offset = 0, .bytes = offset}, value_at);
  if constexpr (kOperands <= kMaxUnrolledOperands) {
    for (; offset + kUnroll * step <= bytes; offset += kUnroll * step) {
      const auto v0 = value_at(operands, offset);
      const auto v1 = value_at(operands, offset + step);
      const auto v2 = value_at(operands, offset + 2 * step);
      const auto v3 = value_at(operands, offset + 3 * step);
      store_all<Codec>(v0, out, offset);
      store_all<Codec>(v1, out, offset + step);
      store_all<Codec>(v2, out, offset + 2 * step);
      store_all<Codec>(v3, out, offset + 3 * step);
    }
  }
  for (; offset + step <= bytes; offset += step) store_all<Codec>(value_at(operands, offset), out, offset);
  if (offset < bytes) {
    sweep_edge<Codec, kOperands>(operands, out, {.offset = offset, .bytes = bytes - offset}, value_at);
  }
}

template <typename Codec, typename Op, std::size_t kElementBytes, std::size_t kOperands>
void fold(const std::byte* const* operands, Outputs out, std::size_t elements) {
  sweep<Codec, kOperands>(
      operands, out, elements * kElementBytes,
      [](const std::byte* const* sources, std::size_t offset)
          HWY_ATTR { return folded<Codec, Op, kOperands>(sources, offset); },
      kElementBytes);
}

template <typename Codec, typename Computed, std::size_t kElementBytes>
void divide_floats(const std::byte* value, Outputs out, std::size_t elements, std::size_t divisor) {
  const Divisor<Computed> by(divisor);
  sweep<Codec, 1>(
      &value, out, elements * kElementBytes,
      [by](const std::byte* const* sources, std::size_t offset)
          HWY_ATTR { return Codec::divided(Codec::load(sources[0] + offset), by); },
      kElementBytes);
}

template <typename T>
void divide_integers(const std::byte* value, Outputs out, std::size_t elements, std::size_t divisor) {
  for (std::size_t i = 0; i < elements; ++i) {
    T element;
    std::memcpy(&element, value + i * sizeof(T), sizeof(T));
    const bool negative = element < 0;
    const auto wide = static_cast<std::uint64_t>(element);
    const std::uint64_t quotient = (negative ? 0 - wide : wide) / divisor;
    element = static_cast<T>(negative ? 0 - quotient : quotient);
    std::memcpy(out.first + i * sizeof(T), &element, sizeof(T));
    if (out.second != nullptr) std::memcpy(out.second + i * sizeof(T), &element, sizeof(T));
  }
}

// In the order of ReduceOp.
using KernelsByOp = std::array<FoldKernels, 5>;

// Gradients are summed; other operations make do with pairs.
template <typename Codec, std::size_t kElementBytes, typename ProductCodec = Codec>
constexpr KernelsByOp kernels_by_op(Divide divide) {
  const FoldKernels sum = {.trees = {fold<Codec, Sum, kElementBytes, 2>, fold<Codec, Sum, kElementBytes, 4>,
                                     fold<Codec, Sum, kElementBytes, 8>},
                           .divide = divide};
  return {sum, sum, FoldKernels{.trees = {fold<Codec, Min, kElementBytes, 2>}, .divide = divide},
          FoldKernels{.trees = {fold<Codec, Max, kElementBytes, 2>}, .divide = divide},
          FoldKernels{.trees = {fold<ProductCodec, Product, kElementBytes, 2>}, .divide = divide}};
}

const FoldKernels& kernels_at(std::size_t dtype, std::size_t op) {
  // In the order of DType.
  static constexpr std::array<KernelsByOp, 7> kTable = {
      kernels_by_op<Native<float>, 4>(divide_floats<Native<float>, float, 4>),
      kernels_by_op<Bf16, 2>(divide_floats<Bf16, float, 2>),
      kernels_by_op<Fp16, 2>(divide_floats<Fp16, float, 2>),
      kernels_by_op<Native<double>, 8>(divide_floats<Native<double>, double, 8>),
      kernels_by_op<Native<std::int32_t>, 4>(divide_integers<std::int32_t>),
      kernels_by_op<Native<std::int64_t>, 8, LongProduct>(divide_integers<std::int64_t>),
      kernels_by_op<Native<std::uint8_t>, 1, ByteProduct>(divide_integers<std::uint8_t>),
  };
  return kTable[dtype][op];
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(kernels_at);

const FoldKernels& fold_kernels(DType dtype, ReduceOp op) {
  const auto row = static_cast<std::size_t>(dtype);
  const auto column = static_cast<std::size_t>(op);
  LOCKSTEP_CHECK(row < 7 && column < 5, "a combination of unknown dtype or operation");
  return HWY_DYNAMIC_DISPATCH(kernels_at)(row, column);
}

}  // namespace lockstep::kernels
#endif
