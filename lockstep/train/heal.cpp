// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/heal.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "lockstep/base/failpoint.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/train/state_pieces.h"

namespace lockstep::train {
namespace {

using Pieces = std::vector<TensorPiece>;
using Order = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>;

Order order_of(const TensorPiece& piece) {
  const Runs& runs = piece.elements;
  return {piece.tensor, runs.first, runs.length, runs.distance, runs.count};
}

// Calls body(number among those of `a`, number among those of `b`, how many follow each other) for the
// elements that both have, in ascending order.
template <typename Body>
void each_common(const Runs& a, const Runs& b, const Body& body) {
  for (std::size_t run = 0; run < b.count; ++run) {
    const std::size_t begin = b.first + run * b.distance;
    each_overlap(a, {begin, begin + b.length}, [&](std::size_t in_a, std::size_t element, std::size_t count) {
      body(in_a, run * b.length + (element - begin), count);
    });
  }
}

std::size_t common(const Runs& a, const Runs& b) {
  std::size_t sum = 0;
  each_common(a, b, [&](std::size_t, std::size_t, std::size_t count) { sum += count; });
  return sum;
}

// Of a piece: which ranks have it, and as their which one.
using Holders = std::vector<std::pair<Rank, std::size_t>>;

// To itself if it can; otherwise givers take turns.
const std::pair<Rank, std::size_t>& giver_for(Rank to, const Holders& holders, std::size_t turn) {
  const auto own = std::ranges::find(holders, to, &Holders::value_type::first);
  return own != holders.end() ? *own : holders[turn % holders.size()];
}

// --- Ranks tell each other lists of pieces.

constexpr std::size_t kNumbers = 5;

std::vector<std::int64_t> to_numbers(const Pieces& pieces) {
  std::vector<std::int64_t> numbers;
  for (const TensorPiece& piece : pieces) {
    const Runs& runs = piece.elements;
    for (const std::size_t number : {piece.tensor, runs.first, runs.length, runs.distance, runs.count}) {
      numbers.push_back(static_cast<std::int64_t>(number));
    }
  }
  return numbers;
}

Pieces to_pieces(std::span<const std::int64_t> numbers) {
  Pieces pieces;
  for (std::size_t i = 0; i < numbers.size(); i += kNumbers) {
    const auto number = [&](std::size_t which) { return static_cast<std::size_t>(numbers[i + which]); };
    pieces.push_back({number(0), {number(1), number(2), number(3), number(4)}});
  }
  return pieces;
}

// By rank. Everybody's numbers stand in a list of zeros, so that the sum is the list of all.
std::vector<Pieces> all_pieces(const Pieces& mine, const comm::Communicator& world) {
  const auto me = static_cast<std::size_t>(world.rank());
  std::vector<std::int64_t> ends(static_cast<std::size_t>(world.size()), 0);
  const std::vector<std::int64_t> numbers = to_numbers(mine);
  for (std::size_t rank = me; rank < ends.size(); ++rank)
    ends[rank] = static_cast<std::int64_t>(numbers.size());
  world.all_reduce(std::as_writable_bytes(std::span(ends)), {.dtype = DType::int64});
  const auto begin_of = [&](std::size_t rank) {
    return rank == 0 ? std::size_t{0} : static_cast<std::size_t>(ends[rank - 1]);
  };
  std::vector<std::int64_t> all(static_cast<std::size_t>(ends.back()), 0);
  std::ranges::copy(numbers, all.begin() + static_cast<std::ptrdiff_t>(begin_of(me)));
  world.all_reduce(std::as_writable_bytes(std::span(all)), {.dtype = DType::int64});
  std::vector<Pieces> pieces;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    pieces.push_back(to_pieces(std::span(all).subspan(begin_of(rank), begin_of(rank + 1) - begin_of(rank))));
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
  Exchange(const KeptState& kept, const std::vector<Pieces>& all_kept, const std::vector<Pieces>& all_needed,
           const comm::Communicator& world)
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
        values.resize(values.size() + common(kept_piece(gift), needed_piece(gift)));
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
    return all_kept_[static_cast<std::size_t>(gift.from)][gift.kept].elements;
  }
  const Runs& needed_piece(const Gift& gift) const {
    return all_needed_[static_cast<std::size_t>(gift.to)][gift.needed].elements;
  }

  void pack(const Gift& gift, std::vector<float>& message) const {
    const std::span<const float> values = kept_.values_of(gift.kept);
    each_common(kept_piece(gift), needed_piece(gift),
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
      each_common(kept_piece(gift), needed_piece(gift),
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
  const std::vector<Pieces>& all_kept_;
  const std::vector<Pieces>& all_needed_;
  const comm::Communicator& world_;
};

// The newest that a rank has kept; all know it. None when nobody has anything.
std::optional<Reached> newest(const KeptState& kept, const comm::Communicator& world) {
  constexpr std::int64_t kNone = -1;
  const std::int64_t mine = kept.reached() ? kept.reached()->progress.step : kNone;
  std::int64_t step = mine;
  world.all_reduce(as_writable_bytes_of(step), {.dtype = DType::int64, .op = comm::ReduceOp::max});
  if (step == kNone) return std::nullopt;
  std::int64_t teller = mine == step ? world.rank() : world.size();
  world.all_reduce(as_writable_bytes_of(teller), {.dtype = DType::int64, .op = comm::ReduceOp::min});
  Reached reached = mine == step ? *kept.reached() : Reached();
  world.broadcast(as_writable_bytes_of(reached), {.dtype = DType::uint8, .root = static_cast<Rank>(teller)});
  return reached;
}

}  // namespace

std::optional<std::vector<Gift>> plan_gifts(const std::vector<Pieces>& kept,
                                            const std::vector<Pieces>& needed) {
  std::map<Order, Holders> holders;
  std::map<std::size_t, std::vector<const TensorPiece*>> of_tensor;  // each once
  for (std::size_t rank = 0; rank < kept.size(); ++rank) {
    for (std::size_t i = 0; i < kept[rank].size(); ++i) {
      Holders& of_piece = holders[order_of(kept[rank][i])];
      if (of_piece.empty()) of_tensor[kept[rank][i].tensor].push_back(&kept[rank][i]);
      of_piece.emplace_back(static_cast<Rank>(rank), i);
    }
  }
  std::vector<Gift> gifts;
  for (std::size_t rank = 0; rank < needed.size(); ++rank) {
    for (std::size_t i = 0; i < needed[rank].size(); ++i) {
      const TensorPiece& need = needed[rank][i];
      std::size_t found = 0;
      for (const TensorPiece* piece : of_tensor[need.tensor]) {
        const std::size_t elements = common(piece->elements, need.elements);
        if (elements == 0) continue;
        found += elements;
        const auto to = static_cast<Rank>(rank);
        const auto& [from, which] = giver_for(to, holders.at(order_of(*piece)), rank + gifts.size());
        gifts.push_back({.from = from, .to = to, .kept = which, .needed = i});
      }
      if (found != need.elements.size()) return std::nullopt;
    }
  }
  return gifts;
}

std::optional<Reached> heal(const KeptState& kept, const Holding& holding, Weights& weights) {
  const comm::Communicator& world = holding.groups.world;
  const std::optional<Reached> reached = newest(kept, world);
  if (!reached) return std::nullopt;
  const bool counts = kept.reached() && kept.reached()->progress.step == reached->progress.step;
  const Needs needs = needs_of(holding, weights.moments());
  const std::vector<Pieces> all_kept = all_pieces(counts ? kept.pieces() : Pieces(), world);
  const std::vector<Pieces> all_needed = all_pieces(needs.pieces, world);
  std::optional<std::vector<Gift>> gifts = plan_gifts(all_kept, all_needed);
  if (!gifts) return std::nullopt;
  const auto tensor_of = [&](const Gift& gift) {
    return all_needed[static_cast<std::size_t>(gift.to)][gift.needed].tensor;
  };
  std::ranges::stable_sort(*gifts, {}, tensor_of);

  const Exchange exchange(kept, all_kept, all_needed, world);
  for (auto begin = gifts->begin(); begin != gifts->end();) {
    const auto end = std::find_if(begin, gifts->end(),
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
