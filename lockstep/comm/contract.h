// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a group must agree on before a byte of an operation moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/base/dtype.h"
#include "lockstep/base/rank.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/schedule/collective/collective.h"
#include "lockstep/transport/channel.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// What an operation ignores (the root of an all_gather, say) has the default value, so that it cannot differ.
struct Contract {
  schedule::Op op = schedule::Op::barrier;
  bool point_to_point = false;  // send and recv: `op` means nothing then
  DType dtype = DType::fp32;
  kernels::ReduceOp reduce = kernels::ReduceOp::sum;
  schedule::Algorithm algorithm = schedule::Algorithm::direct;
  schedule::Algorithm inner = schedule::Algorithm::direct;  // of hierarchical
  schedule::Algorithm outer = schedule::Algorithm::direct;
  Rank root = 0;
  std::uint64_t count = 0;
  std::uint64_t shape_digest = 0;  // topology, lanes, segments: what else shapes the program

  bool operator==(const Contract&) const = default;
};

// Whether the operation adds values of different ranks.
bool reduces(schedule::Op op);
// Whether one rank is special in it.
bool has_root(schedule::Op op);

std::uint64_t digest_of(const Contract& contract);
// For the envelopes of send and recv, which have no number that both ends know: dtype and count, so that an
// end can say what the other one called. The way back is for what a peer has sent: its dtype may be unknown.
std::uint64_t message_word(const Contract& contract);
Contract from_message_word(std::uint64_t word);

std::uint64_t shape_digest_of(const schedule::CollectiveSpec& spec);

// "all_reduce(sum of 1024 x fp32, direct)"
std::string describe(const Contract& contract);

// The name users know: "all_reduce", "send/recv".
std::string operation_name(const Contract& contract);

// A contract as a notice that peers can read, and back.
transport::NoticeHead to_notice(const Contract& contract);
Contract from_notice(const transport::NoticeHead& head);

// The sign of life of a rank that waits: it beats for as long as it is stalled and not frozen, and says whom
// it waits for. Travels in the same notice and is no part of the contract.
struct Pulse {
  std::uint32_t beats = 0;
  Rank waits_for = -1;

  bool operator==(const Pulse&) const = default;
};
void set_pulse(transport::NoticeHead& head, const Pulse& pulse);
Pulse pulse_of(const transport::NoticeHead& head);

}  // namespace lockstep::comm
