// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/mutation.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace lockstep::schedule::testing {
namespace {

using Programs = std::vector<Program>;

std::size_t below(Random& random, std::size_t limit) {
  return random() % limit;
}

template <typename T>
auto at(std::vector<T>& list, std::size_t index) {
  return list.begin() + static_cast<std::ptrdiff_t>(index);
}

// A random round that has moves, and one of these.
struct Place {
  Program* program = nullptr;
  std::size_t round = 0;
  std::size_t move = 0;

  Round& moves() const { return program->rounds[round]; }
  Move& it() const { return moves()[move]; }
};

Place any_place(Programs& programs, Random& random) {
  std::vector<Place> places;
  for (Program& program : programs) {
    for (std::size_t round = 0; round < program.rounds.size(); ++round) {
      for (std::size_t move = 0; move < program.rounds[round].size(); ++move) {
        places.push_back({&program, round, move});
      }
    }
  }
  return places.empty() ? Place{} : places[below(random, places.size())];
}

template <bool (*change)(const Place&, Random&)>
bool at_any_place(Programs& programs, Random& random) {
  const Place place = any_place(programs, random);
  return place.program != nullptr && change(place, random);
}

std::vector<Slice*> slices_of(Move& move) {
  std::vector<Slice*> slices;
  for (Source& source : move.sources) {
    if (source.from == kLocal) slices.push_back(&source.slice);
  }
  if (move.into) slices.push_back(&*move.into);
  return slices;
}

bool drop_move(const Place& place, Random&) {
  place.moves().erase(at(place.moves(), place.move));
  return true;
}

bool drop_round(const Place& place, Random&) {
  place.program->rounds.erase(at(place.program->rounds, place.round));
  return true;
}

bool swap_peer(const Place& place, Random& random) {
  std::vector<Rank*> peers;
  for (Source& source : place.it().sources) {
    if (source.from != kLocal) peers.push_back(&source.from);
  }
  for (Rank& peer : place.it().send_to) peers.push_back(&peer);
  if (peers.empty()) return false;
  *peers[below(random, peers.size())] =
      static_cast<Rank>(random() % static_cast<unsigned>(place.program->world));
  return true;
}

bool shift_range(const Place& place, Random& random) {
  const std::vector<Slice*> slices = slices_of(place.it());
  if (slices.empty()) return false;
  Range& range = slices[below(random, slices.size())]->range;
  const std::size_t by = random() % 3 == 0 ? range.size() : 1 + random() % 2;
  if (random() % 2 == 0) {
    range = {range.begin + by, range.end + by};
  } else if (range.begin >= by) {
    range = {range.begin - by, range.end - by};
  } else {
    return false;
  }
  return true;
}

bool resize_range(const Place& place, Random& random) {
  const std::vector<Slice*> slices = slices_of(place.it());
  if (slices.empty()) return false;
  Range& range = slices[below(random, slices.size())]->range;
  random() % 2 == 0 ? ++range.end : --range.end;
  return true;
}

bool duplicate_move(const Place& place, Random& random) {
  const Move copy = place.it();
  place.moves().insert(at(place.moves(), below(random, place.moves().size() + 1)), copy);
  return true;
}

bool duplicate_round(const Place& place, Random&) {
  const Round copy = place.moves();
  place.program->rounds.insert(at(place.program->rounds, place.round), copy);
  return true;
}

bool swap_sources(const Place& place, Random& random) {
  std::vector<Source>& sources = place.it().sources;
  if (sources.size() < 2) return false;
  Source& one = sources[below(random, sources.size())];
  Source& other = sources[below(random, sources.size())];
  std::swap(one.from, other.from);
  std::swap(one.slice, other.slice);
  return true;
}

bool change_merges(const Place& place, Random& random) {
  std::vector<Source>& sources = place.it().sources;
  Source& less = sources[below(random, sources.size())];
  Source& more = sources[below(random, sources.size())];
  if (less.merges == 0) return false;
  --less.merges;
  ++more.merges;
  return true;
}

bool drop_source(const Place& place, Random& random) {
  std::vector<Source>& sources = place.it().sources;
  if (sources.size() < 2) return false;
  const std::size_t dropped = below(random, sources.size());
  const std::size_t keeper = dropped == 0 ? 1 : dropped;
  const int merges = sources[dropped].merges + (dropped == 0 ? sources[1].merges : 0);
  if (merges == 0) return false;
  if (keeper == dropped) {
    sources[dropped - 1].merges = static_cast<std::uint8_t>(sources[dropped - 1].merges + merges - 1);
  } else {
    sources[1].merges = static_cast<std::uint8_t>(merges - 1);
  }
  sources.erase(at(sources, dropped));
  return true;
}

bool toggle_finish(const Place& place, Random&) {
  place.it().finish = !place.it().finish;
  return true;
}

bool change_destination(const Place& place, Random& random) {
  if (!place.it().into) return false;
  Slice& into = *place.it().into;
  const std::size_t elements = into.range.size();
  into.buffer = static_cast<std::uint32_t>(below(random, place.program->buffer_elements.size()));
  const std::size_t room = place.program->buffer_elements[into.buffer];
  if (room < elements) return false;
  into.range.begin = below(random, room - elements + 1);
  into.range.end = into.range.begin + elements;
  return true;
}

bool drop_destination(const Place& place, Random&) {
  const bool had = place.it().into.has_value();
  place.it().into.reset();
  return had;
}

bool drop_send(const Place& place, Random& random) {
  std::vector<Rank>& peers = place.it().send_to;
  if (peers.empty()) return false;
  peers.erase(at(peers, below(random, peers.size())));
  return true;
}

bool swap_moves(const Place& place, Random& random) {
  std::swap(place.it(), place.moves()[below(random, place.moves().size())]);
  return true;
}

bool swap_rounds(const Place& place, Random&) {
  if (place.round + 1 >= place.program->rounds.size()) return false;
  std::swap(place.moves(), place.program->rounds[place.round + 1]);
  return true;
}

bool join_rounds(const Place& place, Random&) {
  if (place.round + 1 >= place.program->rounds.size()) return false;
  const Round next = place.program->rounds[place.round + 1];
  place.moves().insert(place.moves().end(), next.begin(), next.end());
  place.program->rounds.erase(at(place.program->rounds, place.round + 1));
  return true;
}

bool split_round(const Place& place, Random&) {
  if (place.move == 0) return false;
  const Round tail(at(place.moves(), place.move), place.moves().end());
  place.moves().resize(place.move);
  place.program->rounds.insert(at(place.program->rounds, place.round + 1), tail);
  return true;
}

bool swap_slices(const Place& place, Random& random) {
  const std::vector<Slice*> ours = slices_of(place.it());
  const std::vector<Slice*> theirs = slices_of(place.moves()[below(random, place.moves().size())]);
  if (ours.empty() || theirs.empty()) return false;
  std::swap(*ours[below(random, ours.size())], *theirs[below(random, theirs.size())]);
  return true;
}

bool swap_peers_of_two_moves(const Place& place, Random& random) {
  Move& other = place.moves()[below(random, place.moves().size())];
  std::swap(place.it().send_to, other.send_to);
  return true;
}

// The move that takes what `sender` sends to the peer in this place of its send_to; no program if none does.
Place taker_of(Programs& programs, const Place& sender, std::size_t slot) {
  std::vector<Rank>& peers = sender.it().send_to;
  const Rank from = sender.program->rank;
  const Rank to = peers[slot];
  std::ptrdiff_t number = std::count(peers.begin(), at(peers, slot), to);
  for (std::size_t round = 0; round <= sender.round; ++round) {
    const Round& moves = sender.program->rounds[round];
    const std::size_t end = round == sender.round ? sender.move : moves.size();
    for (std::size_t move = 0; move < end; ++move) number += std::ranges::count(moves[move].send_to, to);
  }
  Program& program = programs[static_cast<std::size_t>(to)];
  for (std::size_t round = 0; round < program.rounds.size(); ++round) {
    for (std::size_t move = 0; move < program.rounds[round].size(); ++move) {
      const auto takes = std::ranges::count(program.rounds[round][move].sources, from, &Source::from);
      if (number < takes) return {&program, round, move};
      number -= takes;
    }
  }
  return {};
}

// Takes a message out at both ends, so that all others still match.
bool drop_message(Programs& programs, Random& random) {
  const Place sender = any_place(programs, random);
  if (sender.program == nullptr || sender.it().send_to.empty()) return false;
  const std::size_t slot = below(random, sender.it().send_to.size());
  const Place taker = taker_of(programs, sender, slot);
  if (taker.program == nullptr || taker.it().sources.size() != 1) return false;
  sender.it().send_to.erase(at(sender.it().send_to, slot));
  taker.moves().erase(at(taker.moves(), taker.move));
  return true;
}

void insert_after(const Place& place, Move move) {
  place.program->rounds.insert(at(place.program->rounds, place.round + 1), Round{std::move(move)});
}

constexpr std::array kMutations = {
    Mutation{"drop a move", at_any_place<drop_move>},
    Mutation{"drop a round", at_any_place<drop_round>},
    Mutation{"drop a source", at_any_place<drop_source>},
    Mutation{"drop a destination", at_any_place<drop_destination>},
    Mutation{"drop a send", at_any_place<drop_send>},
    Mutation{"drop a message at both ends", drop_message},
    Mutation{"send a message twice", send_message_twice},
    Mutation{"swap a peer", at_any_place<swap_peer>},
    Mutation{"swap the peers of two moves", at_any_place<swap_peers_of_two_moves>},
    Mutation{"shift a range", at_any_place<shift_range>},
    Mutation{"resize a range", at_any_place<resize_range>},
    Mutation{"duplicate a move", at_any_place<duplicate_move>},
    Mutation{"duplicate a round", at_any_place<duplicate_round>},
    Mutation{"swap two sources", at_any_place<swap_sources>},
    Mutation{"swap two slices", at_any_place<swap_slices>},
    Mutation{"swap two moves", at_any_place<swap_moves>},
    Mutation{"swap two rounds", at_any_place<swap_rounds>},
    Mutation{"join two rounds", at_any_place<join_rounds>},
    Mutation{"split a round", at_any_place<split_round>},
    Mutation{"change merges", at_any_place<change_merges>},
    Mutation{"set or drop finish", at_any_place<toggle_finish>},
    Mutation{"change the destination", at_any_place<change_destination>},
};

}  // namespace

bool send_message_twice(std::vector<Program>& programs, Random& random) {
  const Place sender = any_place(programs, random);
  if (sender.program == nullptr || sender.it().send_to.empty()) return false;
  const std::size_t slot = below(random, sender.it().send_to.size());
  const Place taker = taker_of(programs, sender, slot);
  if (taker.program == nullptr || taker.it().sources.size() != 1 || !taker.it().into) return false;
  const Move& sent = sender.it();
  Source value;
  value.slice = sent.into ? *sent.into : sent.sources.front().slice;
  insert_after(
      taker,
      {.sources = {taker.it().sources.front()}, .into = taker.it().into, .send_to = {}, .finish = false});
  insert_after(sender, {.sources = {value}, .into = {}, .send_to = {sent.send_to[slot]}, .finish = false});
  return true;
}

std::span<const Mutation> all_mutations() {
  return kMutations;
}

}  // namespace lockstep::schedule::testing
