// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/values.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/kernels/float16.h"

namespace lockstep::cli {
namespace {

std::uint64_t hash(Rank rank, std::size_t element) {
  std::uint64_t x =
      element * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(rank) * 0xd1342543de82ef95ULL + 1;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
  return x ^ (x >> 32);
}

// An element type as its bits, and how two of them are added: in `Wide`, rounded after every addition.
template <typename T>
struct Plain {
  using Bits = T;
  using Wide = T;
  static Wide widen(Bits bits) { return bits; }
  static Bits narrow(Wide value) { return value; }
  static constexpr double kEpsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
};
struct Bf16 {
  using Bits = std::uint16_t;
  using Wide = float;
  static Wide widen(Bits bits) { return kernels::float_of_bf16(bits); }
  static Bits narrow(Wide value) { return kernels::bf16_of_float(value); }
  static constexpr double kEpsilon = 0x1p-7;
};
struct Fp16 {
  using Bits = std::uint16_t;
  using Wide = float;
  static Wide widen(Bits bits) { return kernels::float_of_fp16(bits); }
  static Bits narrow(Wide value) { return kernels::fp16_of_float(value); }
  static constexpr double kEpsilon = 0x1p-10;
};

template <typename Type>
typename Type::Bits value(Rank rank, std::size_t element) {
  const std::uint64_t bits = hash(rank, element);
  if constexpr (std::is_floating_point_v<typename Type::Wide>) {
    return Type::narrow(static_cast<typename Type::Wide>(0.5 + static_cast<double>(bits >> 11) * 0x1p-53));
  } else {
    return static_cast<typename Type::Bits>(bits);
  }
}

template <typename Type>
typename Type::Bits add(typename Type::Bits a, typename Type::Bits b) {
  using Wide = typename Type::Wide;
  if constexpr (std::is_floating_point_v<Wide>) {
    return Type::narrow(Type::widen(a) + Type::widen(b));
  } else {
    using Unsigned = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  }
}

// The canonical order: the left part is the largest power of two below the number of ranks.
template <typename Type>
typename Type::Bits sum(Rank first, int ranks, std::size_t element) {
  if (ranks == 1) return value<Type>(first, element);
  const auto left = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
  return add<Type>(sum<Type>(first, left, element), sum<Type>(first + left, ranks - left, element));
}

// All values are positive, so the error of any order is bounded by a rounding of the whole sum per addition.
template <typename Type>
bool is_close_to_sum(typename Type::Bits got, int ranks, std::size_t element) {
  double exact = 0;
  for (Rank rank = 0; rank < ranks; ++rank)
    exact += static_cast<double>(Type::widen(value<Type>(rank, element)));
  return std::abs(static_cast<double>(Type::widen(got)) - exact) <= exact * Type::kEpsilon * ranks;
}

template <typename Bits>
Bits load(ConstBytes buffer, std::size_t element) {
  Bits bits{};
  std::memcpy(&bits, buffer.data() + element * sizeof bits, sizeof bits);
  return bits;
}

template <typename Bits>
bool same_bits(Bits a, Bits b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <typename Visitor>
auto with_type(DType dtype, Visitor visit) {
  switch (dtype) {
    case DType::fp32:
      return visit(Plain<float>{});
    case DType::bf16:
      return visit(Bf16{});
    case DType::fp16:
      return visit(Fp16{});
    case DType::fp64:
      return visit(Plain<double>{});
    case DType::int32:
      return visit(Plain<std::int32_t>{});
    case DType::int64:
      return visit(Plain<std::int64_t>{});
    case DType::uint8:
      return visit(Plain<std::uint8_t>{});
  }
  LOCKSTEP_CHECK(false, "a dtype without a name");
  return visit(Plain<float>{});
}

}  // namespace

void fill_values(Bytes buffer, DType dtype, Rank rank, Range where) {
  LOCKSTEP_CHECK(where.end * size_of(dtype) <= buffer.size());
  with_type(dtype, [&]<typename Type>(Type) {
    for (std::size_t i = where.begin; i < where.end; ++i) {
      const auto bits = value<Type>(rank, i);
      std::memcpy(buffer.data() + i * sizeof bits, &bits, sizeof bits);
    }
  });
}

bool holds_sum(ConstBytes buffer, DType dtype, int ranks, Range where, Comparison comparison) {
  LOCKSTEP_CHECK(where.end * size_of(dtype) <= buffer.size());
  return with_type(dtype, [&]<typename Type>(Type) {
    using Bits = typename Type::Bits;
    const bool by_bits = comparison == Comparison::bits || !std::is_floating_point_v<typename Type::Wide>;
    for (std::size_t i = where.begin; i < where.end; ++i) {
      const Bits got = load<Bits>(buffer, i);
      const bool right =
          by_bits ? same_bits(got, sum<Type>(0, ranks, i)) : is_close_to_sum<Type>(got, ranks, i);
      if (!right) return false;
    }
    return true;
  });
}

bool holds_values(ConstBytes buffer, DType dtype, Rank rank, Range where, std::size_t first) {
  LOCKSTEP_CHECK(where.end * size_of(dtype) <= buffer.size());
  return with_type(dtype, [&]<typename Type>(Type) {
    using Bits = typename Type::Bits;
    for (std::size_t i = where.begin; i < where.end; ++i) {
      if (!same_bits(load<Bits>(buffer, i), value<Type>(rank, first + (i - where.begin)))) return false;
    }
    return true;
  });
}

}  // namespace lockstep::cli
