// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/heal.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "lockstep/base/failpoint.h"
#include "lockstep/elastic/healing.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/replicas.h"
#include "lockstep/train/state_pieces.h"

namespace lockstep::train {
namespace {

using Pieces = elastic::TensorPieces;
using elastic::Gift;
using elastic::TensorPiece;

// --- Ranks tell each other lists of pieces.

std::vector<std::int64_t> to_list(const Pieces& pieces) {
  std::vector<std::int64_t> list;
  for (const TensorPiece& piece : pieces) {
    for (const std::size_t number : elastic::numbers_of(piece)) {
      list.push_back(static_cast<std::int64_t>(number));
    }
  }
  return list;
}

Pieces to_pieces(std::span<const std::int64_t> list) {
  Pieces pieces;
  elastic::PieceNumbers numbers = {};
  for (std::size_t i = 0; i < list.size(); ++i) {
    numbers[i % numbers.size()] = static_cast<std::size_t>(list[i]);
    if ((i + 1) % numbers.size() == 0) pieces.push_back(elastic::piece_of(numbers));
  }
  return pieces;
}

// By rank.
std::vector<Pieces> all_pieces(const Pieces& mine, const comm::Communicator& world) {
  std::vector<Pieces> pieces;
  for (const std::vector<std::int64_t>& list : gathered_lists(to_list(mine), world)) {
    pieces.push_back(to_pieces(list));
  }
  return pieces;
}

// --- What a rank needs.

// A needed piece, and where its elements go: to a part of a parameter, from its `offset`-th element on.
struct Destination {
  std::size_t part = 0;
  std::size_t offset = 0;
};

struct Needs {
  struct Part {
    int quantity = 0;
    HeldPart held;
  };
  std::vector<Part> parts;
  Pieces pieces;
  std::vector<Destination> destinations;  // by piece
};

Needs needs_of(const Holding& holding, int moments) {
  Needs needs;
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < holding.whole.specs().size(); ++i) numbers[holding.whole.specs()[i].name] = i;
  const auto add = [&](int quantity, const HeldPart& held) {
    const std::size_t parameter = numbers.at(holding.layout.specs()[held.parameter].name);
    std::size_t offset = 0;
    for (const Runs& runs : runs_of(holding.shard(held.parameter), held.elements)) {
      needs.pieces.push_back({tensor_number(holding.whole, quantity, parameter), runs});
      needs.destinations.push_back({needs.parts.size(), offset});
      offset += runs.size();
    }
    needs.parts.push_back({quantity, held});
  };
  for (const HeldPart& held : parts_with_values(holding)) add(0, held);
  for (int quantity = 1; quantity <= moments; ++quantity) {
    for (const HeldPart& held : parts_with_moments(holding)) add(quantity, held);
  }
  return needs;
}

// --- The exchange.

// Messages are no longer than this.
constexpr std::size_t kMessageFloats = std::size_t{1} << 22;

class Exchange {
 public:
  Exchange(const KeptState& kept, const std::vector<elastic::Kept>& all_kept,
           const std::vector<Pieces>& all_needed, const comm::Communicator& world)
      : kept_(kept), all_kept_(all_kept), all_needed_(all_needed), world_(world) {}

  // Those of one tensor, to and from this rank. `take` gets the values of a needed piece that begin with its
  // element of that number.
  using Take = std::function<void(std::size_t needed, std::size_t number, std::span<const float> values)>;
  void pass_on(std::span<const Gift> gifts, const Take& take) const {
    const Rank me = world_.rank();
    std::map<Rank, std::vector<float>> outgoing;
    std::map<Rank, std::vector<float>> incoming;
    for (const Gift& gift : gifts) {
      if (gift.from == me) pack(gift, outgoing[gift.to]);
      if (gift.to == me && gift.from != me) {
        std::vector<float>& values = incoming[gift.from];
        values.resize(values.size() + elastic::count_common(kept_piece(gift), needed_piece(gift)));
      }
    }
    incoming[me] = std::exchange(outgoing[me], {});
    std::vector<comm::Work> works;
    for (auto& [from, values] : incoming) {
      if (from == me) continue;
      each_message(values,
                   [&, peer = from](Bytes message) { works.push_back(world_.recv_async(peer, message)); });
    }
    for (auto& [to, values] : outgoing) {
      each_message(values,
                   [&, peer = to](Bytes message) { works.push_back(world_.send_async(peer, message)); });
    }
    for (comm::Work& work : works) work.wait();
    unpack(gifts, incoming, take);
  }

 private:
  const Runs& kept_piece(const Gift& gift) const {
    return all_kept_[static_cast<std::size_t>(gift.from)].pieces[gift.kept].elements;
  }
  const Runs& needed_piece(const Gift& gift) const {
    return all_needed_[static_cast<std::size_t>(gift.to)][gift.needed].elements;
  }

  void pack(const Gift& gift, std::vector<float>& message) const {
    const std::span<const float> values = kept_.values_of(gift.kept);
    elastic::each_common(kept_piece(gift), needed_piece(gift),
                         [&](std::size_t in_kept, std::size_t, std::size_t count) {
                           const std::span<const float> run = values.subspan(in_kept, count);
                           message.insert(message.end(), run.begin(), run.end());
                         });
  }

  void unpack(std::span<const Gift> gifts, const std::map<Rank, std::vector<float>>& messages,
              const Take& take) const {
    std::map<Rank, std::size_t> taken;
    for (const Gift& gift : gifts) {
      if (gift.to != world_.rank()) continue;
      const std::span<const float> message = messages.at(gift.from);
      std::size_t& at = taken[gift.from];
      elastic::each_common(kept_piece(gift), needed_piece(gift),
                           [&](std::size_t, std::size_t in_needed, std::size_t count) {
                             take(gift.needed, in_needed, message.subspan(at, count));
                             at += count;
                           });
    }
  }

  template <typename Body>
  static void each_message(std::vector<float>& values, const Body& body) {
    for (std::size_t begin = 0; begin < values.size(); begin += kMessageFloats) {
      const std::size_t count = std::min(kMessageFloats, values.size() - begin);
      body(std::as_writable_bytes(std::span(values).subspan(begin, count)));
    }
  }

  const KeptState& kept_;
  const std::vector<elastic::Kept>& all_kept_;
  const std::vector<Pieces>& all_needed_;
  const comm::Communicator& world_;
};

// By rank.
std::vector<elastic::Kept> all_kept_by(const KeptState& kept, const comm::Communicator& world) {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(world.size()), elastic::kNoStep);
  if (kept.reached()) steps[static_cast<std::size_t>(world.rank())] = kept.reached()->progress.step;
  world.all_reduce(std::as_writable_bytes(std::span(steps)),
                   {.dtype = DType::int64, .op = comm::ReduceOp::max});
  std::vector<Pieces> pieces = all_pieces(kept.pieces(), world);
  std::vector<elastic::Kept> all;
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    all.push_back({.step = steps[rank], .pieces = std::move(pieces[rank])});
  }
  return all;
}

// What one rank has reached, for all.
Reached told_by(Rank teller, const KeptState& kept, const comm::Communicator& world) {
  Reached reached = world.rank() == teller ? *kept.reached() : Reached();
  world.broadcast(as_writable_bytes_of(reached), {.dtype = DType::uint8, .root = teller});
  return reached;
}

}  // namespace

std::optional<Reached> heal(const KeptState& kept, const Holding& holding, Weights& weights) {
  const comm::Communicator& world = holding.groups.world;
  const Needs needs = needs_of(holding, weights.moments());
  const std::vector<elastic::Kept> all_kept = all_kept_by(kept, world);
  const std::vector<Pieces> all_needed = all_pieces(needs.pieces, world);
  std::optional<elastic::HealingPlan> plan = elastic::plan_healing(all_kept, all_needed);
  if (!plan) return std::nullopt;
  require_equal_pieces(kept, all_kept, plan->step, world);
  const Reached reached = told_by(plan->teller, kept, world);
  std::vector<Gift>& gifts = plan->gifts;
  const auto tensor_of = [&](const Gift& gift) {
    return all_needed[static_cast<std::size_t>(gift.to)][gift.needed].tensor;
  };
  std::ranges::stable_sort(gifts, {}, tensor_of);

  const Exchange exchange(kept, all_kept, all_needed, world);
  for (auto begin = gifts.begin(); begin != gifts.end();) {
    const auto end = std::find_if(begin, gifts.end(),
                                  [&](const Gift& gift) { return tensor_of(gift) != tensor_of(*begin); });
    std::map<std::size_t, std::vector<float>> parts;  // of this rank; what nothing is given of is padding
    exchange.pass_on(
        {begin, end}, [&](std::size_t needed, std::size_t number, std::span<const float> values) {
          const Destination& place = needs.destinations[needed];
          std::vector<float>& part = parts[place.part];
          part.resize(needs.parts[place.part].held.elements.size(), 0.0F);
          std::ranges::copy(values, part.begin() + static_cast<std::ptrdiff_t>(place.offset + number));
        });
    for (const auto& [index, values] : parts) {
      const Needs::Part& part = needs.parts[index];
      const auto& [parameter, elements] = part.held;
      if (part.quantity == 0) {
        weights.assign(parameter, elements.begin, values);
      } else {
        weights.assign_moment(part.quantity - 1, parameter, elements.begin, values);
      }
    }
    LOCKSTEP_FAILPOINT("train.heal.middle");
    begin = end;
  }
  return reached;
}

}  // namespace lockstep::train
