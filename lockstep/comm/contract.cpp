// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/contract.h"

#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "lockstep/comm/algorithm_name.h"

namespace lockstep::comm {
namespace {

// The finalizer of SplitMix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = hash + 0x9e3779b97f4a7c15ULL + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// As it lies in a notice. Only ranks of one run read it, and they run the same program.
struct Wire {
  std::uint8_t op, point_to_point, dtype, reduce, algorithm, inner, outer;
  std::int32_t root;
  std::uint64_t count, shape_digest;
};
constexpr std::size_t kPulseOffset = transport::kNoticeHeadBytes - sizeof(Pulse);
static_assert(std::is_trivially_copyable_v<Wire> && sizeof(Wire) <= kPulseOffset);
static_assert(std::is_trivially_copyable_v<Pulse>);

}  // namespace

bool reduces(schedule::Op op) {
  using schedule::Op;
  return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce;
}

bool has_root(schedule::Op op) {
  return op == schedule::Op::broadcast || op == schedule::Op::reduce;
}

std::uint64_t digest_of(const Contract& contract) {
  std::uint64_t hash = mix(mix(0, static_cast<std::uint64_t>(contract.op)), contract.point_to_point);
  hash = mix(hash, static_cast<std::uint64_t>(contract.dtype));
  hash = mix(hash, static_cast<std::uint64_t>(contract.reduce));
  hash = mix(hash, static_cast<std::uint64_t>(contract.algorithm) << 16 |
                       static_cast<std::uint64_t>(contract.inner) << 8 |
                       static_cast<std::uint64_t>(contract.outer));
  hash = mix(hash, static_cast<std::uint64_t>(contract.root));
  hash = mix(hash, contract.count);
  return mix(hash, contract.shape_digest);
}

std::uint64_t message_word(const Contract& contract) {
  return contract.count << 8 | static_cast<std::uint64_t>(contract.dtype);
}

Contract from_message_word(std::uint64_t word) {
  return {.point_to_point = true, .dtype = static_cast<DType>(word & 0xff), .count = word >> 8};
}

std::uint64_t shape_digest_of(const schedule::CollectiveSpec& spec) {
  std::uint64_t hash = mix(0, spec.segment_elements);
  hash = mix(
      hash, static_cast<std::uint64_t>(spec.grid.rows) << 32 | static_cast<std::uint32_t>(spec.grid.columns));
  hash = mix(hash, spec.grid.torus);
  for (int ranks : spec.ranks_per_host) hash = mix(hash, static_cast<std::uint64_t>(ranks));
  for (const auto& pieces : spec.pieces) {
    hash = mix(hash, pieces.size());
    for (const Subtree& piece : pieces) {
      hash =
          mix(hash, static_cast<std::uint64_t>(piece.first) << 32 | static_cast<std::uint32_t>(piece.count));
    }
  }
  return hash;
}

std::string operation_name(const Contract& contract) {
  return contract.point_to_point ? "send/recv" : std::string(name_of(contract.op));
}

std::string describe(const Contract& contract) {
  if (contract.point_to_point)
    return fmt::format("send/recv({} x {})", contract.count, name_of(contract.dtype));
  const std::string algorithm = to_string(
      AlgorithmName{.algorithm = contract.algorithm, .inner = contract.inner, .outer = contract.outer});
  if (contract.op == schedule::Op::barrier) return fmt::format("barrier({})", algorithm);
  const std::string reduction = reduces(contract.op) ? fmt::format("{} of ", name_of(contract.reduce)) : "";
  const std::string root = has_root(contract.op) ? fmt::format(", root {}", contract.root) : "";
  return fmt::format("{}({}{} x {}{}, {})", name_of(contract.op), reduction, contract.count,
                     name_of(contract.dtype), root, algorithm);
}

transport::NoticeHead to_notice(const Contract& contract) {
  Wire wire{};
  wire.op = static_cast<std::uint8_t>(contract.op);
  wire.point_to_point = contract.point_to_point;
  wire.dtype = static_cast<std::uint8_t>(contract.dtype);
  wire.reduce = static_cast<std::uint8_t>(contract.reduce);
  wire.algorithm = static_cast<std::uint8_t>(contract.algorithm);
  wire.inner = static_cast<std::uint8_t>(contract.inner);
  wire.outer = static_cast<std::uint8_t>(contract.outer);
  wire.root = contract.root;
  wire.count = contract.count;
  wire.shape_digest = contract.shape_digest;
  transport::NoticeHead head{};
  std::memcpy(head.data(), &wire, sizeof wire);
  return head;
}

Contract from_notice(const transport::NoticeHead& head) {
  Wire wire{};
  std::memcpy(&wire, head.data(), sizeof wire);
  return {.op = static_cast<schedule::Op>(wire.op),
          .point_to_point = wire.point_to_point != 0,
          .dtype = static_cast<DType>(wire.dtype),
          .reduce = static_cast<kernels::ReduceOp>(wire.reduce),
          .algorithm = static_cast<schedule::Algorithm>(wire.algorithm),
          .inner = static_cast<schedule::Algorithm>(wire.inner),
          .outer = static_cast<schedule::Algorithm>(wire.outer),
          .root = wire.root,
          .count = wire.count,
          .shape_digest = wire.shape_digest};
}

void set_pulse(transport::NoticeHead& head, const Pulse& pulse) {
  std::memcpy(head.data() + kPulseOffset, &pulse, sizeof pulse);
}

Pulse pulse_of(const transport::NoticeHead& head) {
  Pulse pulse;
  std::memcpy(&pulse, head.data() + kPulseOffset, sizeof pulse);
  return pulse;
}

}  // namespace lockstep::comm
