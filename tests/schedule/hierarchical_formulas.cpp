// SPDX-License-Identifier: Apache-2.0
//
// Letters as in docs/algorithms.md: n elements, M owners on each host. H are the hosts.
#include "tests/schedule/hierarchical_formulas.h"

#include <algorithm>
#include <numeric>

#include "lockstep/schedule/collective/flat.h"

#include "tests/schedule/part_formulas.h"
#include "tests/schedule/ways.h"

namespace lockstep::schedule::testing {
namespace {

using Sizes = std::vector<std::size_t>;

std::vector<Range> laid_in_order(const Sizes& sizes) {
  std::vector<Range> ranges;
  std::size_t begin = 0;
  for (const std::size_t size : sizes) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

GridShape grid_of(int world) {
  return squarest_grid(world, false);
}

class HierarchyTable {
 public:
  explicit HierarchyTable(const CollectiveSpec& spec)
      : spec_(spec), total_{.elements_sent = Sizes(ranks(), 0)} {
    Rank first = 0;
    for (const int size : spec.ranks_per_host) {
      first_.push_back(first);
      first += size;
    }
    const bool takes_scatter = spec.op == Op::all_reduce || spec.op == Op::reduce_scatter;
    const bool leads = takes_scatter && spec.inner == Algorithm::one_shot;
    owners_ = leads ? 1 : *std::ranges::min_element(spec.ranks_per_host);
  }

  PredictedCost cost() {
    switch (spec_.op) {
      case Op::all_reduce:
        inside(Op::reduce_scatter, Op::reduce, shares());
        between_owners(Op::all_reduce);
        inside(Op::all_gather, Op::broadcast, shares());
        break;
      case Op::reduce_scatter:
        inside(Op::reduce_scatter, Op::reduce, shares());
        between_owners(Op::reduce_scatter);
        hand_out();
        break;
      case Op::all_gather:
        hand_in();
        between_owners(Op::all_gather);
        inside(Op::all_gather, Op::broadcast, shares());
        break;
      case Op::broadcast:
      case Op::reduce:
        inside_with_root();
        between_speakers();
        break;
      case Op::all_to_all:
        if (spec_.count > 0) send_blocks();
        break;
      case Op::barrier:
        inside_with_root();
        between_speakers();
        inside_with_root();
        break;
    }
    return total_;
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(spec_.world); }
  int hosts() const { return static_cast<int>(spec_.ranks_per_host.size()); }
  int size_of(int host) const { return spec_.ranks_per_host[static_cast<std::size_t>(host)]; }
  Rank first_of(int host) const { return first_[static_cast<std::size_t>(host)]; }
  int host_of(Rank rank) const {
    int host = 0;
    while (rank >= first_of(host) + size_of(host)) ++host;
    return host;
  }
  int seat_of(Rank rank) const { return rank - first_of(host_of(rank)); }
  int largest_host() const { return *std::ranges::max_element(spec_.ranks_per_host); }
  std::size_t chunk(Rank rank) const {
    return chunk_range(spec_.count, ranks(), static_cast<std::size_t>(rank)).size();
  }

  // What owner i looks after of the chunks of one host: those of the seats i, i + M, i + 2 M, ...
  std::size_t looked_after(int owner, int host) const {
    std::size_t elements = 0;
    for (int seat = owner; seat < size_of(host); seat += owners_) elements += chunk(first_of(host) + seat);
    return elements;
  }
  // The share of every owner: of all_reduce n / M, else what it looks after on all hosts.
  Sizes shares() const {
    Sizes sizes;
    for (int owner = 0; owner < owners_; ++owner) {
      std::size_t share =
          chunk_range(spec_.count, static_cast<std::size_t>(owners_), static_cast<std::size_t>(owner)).size();
      if (spec_.op != Op::all_reduce) {
        share = 0;
        for (int host = 0; host < hosts(); ++host) share += looked_after(owner, host);
      }
      sizes.push_back(share);
    }
    return sizes;
  }

  // Adds what a group sends; returns how deep it is.
  int add(Algorithm algorithm, const Task& task, const std::vector<Rank>& members) {
    const PredictedCost part = part_by_table(algorithm, task);
    for (std::size_t i = 0; i < members.size(); ++i) {
      total_.elements_sent[static_cast<std::size_t>(members[i])] += part.elements_sent[i];
    }
    return part.depth;
  }
  std::vector<Rank> ranks_on(int host) const {
    std::vector<Rank> members(static_cast<std::size_t>(size_of(host)));
    std::iota(members.begin(), members.end(), first_of(host));
    return members;
  }

  static Task task_over(Op op, std::vector<Range> chunks, Rank root) {
    Task task{.op = op, .root = root, .chunks = std::move(chunks)};
    task.count = task.chunks.back().end;
    task.grid = grid_of(task.world());
    return task;
  }

  // With one owner its seat leads, and a rooted operation takes the place of `with_owners`.
  void inside(Op with_owners, Op with_leader, const Sizes& owned) {
    int deepest = 0;
    for (int host = 0; host < hosts(); ++host) {
      Sizes by_seat = owned;
      by_seat.resize(static_cast<std::size_t>(size_of(host)), 0);
      const Task task = owners_ == 1 ? task_over(with_leader, even_chunks(spec_.count, size_of(host)), 0)
                                     : task_over(with_owners, laid_in_order(by_seat), 0);
      deepest = std::max(deepest, add(spec_.inner, task, ranks_on(host)));
    }
    total_.depth += deepest;
  }

  void between_owners(Op op) {
    int deepest = 0;
    for (int owner = 0; owner < owners_; ++owner) {
      Sizes by_host;
      std::vector<Rank> members;
      for (int host = 0; host < hosts(); ++host) {
        by_host.push_back(looked_after(owner, host));
        members.push_back(first_of(host) + owner);
      }
      const std::size_t share = shares()[static_cast<std::size_t>(owner)];
      const Task task =
          task_over(op, op == Op::all_reduce ? even_chunks(share, hosts()) : laid_in_order(by_host), 0);
      deepest = std::max(deepest, add(spec_.outer, task, members));
    }
    total_.depth += deepest;
  }

  // One round for every M seats behind the owners, if they have elements.
  void hand_out() {
    for (int begin = owners_; begin < largest_host(); begin += owners_) {
      bool any = false;
      for (Rank rank = 0; rank < spec_.world; ++rank) {
        if (seat_of(rank) < begin || seat_of(rank) >= begin + owners_) continue;
        total_.elements_sent[static_cast<std::size_t>(owner_of(rank))] += chunk(rank);
        any |= chunk(rank) > 0;
      }
      total_.depth += any ? 1 : 0;
    }
  }
  void hand_in() {
    bool any = false;
    for (Rank rank = 0; rank < spec_.world; ++rank) {
      if (seat_of(rank) < owners_) continue;
      total_.elements_sent[static_cast<std::size_t>(rank)] += chunk(rank);
      any |= chunk(rank) > 0;
    }
    total_.depth += any ? 1 : 0;
  }
  Rank owner_of(Rank rank) const { return first_of(host_of(rank)) + seat_of(rank) % owners_; }

  // The root speaks for its host, the first seat for every other, and in a barrier for all.
  Rank speaker_of(int host) const {
    const bool is_roots = spec_.op != Op::barrier && host == host_of(spec_.root);
    return is_roots ? spec_.root : first_of(host);
  }
  std::size_t elements() const { return spec_.op == Op::barrier ? 0 : spec_.count; }
  void inside_with_root() {
    int deepest = 0;
    for (int host = 0; host < hosts(); ++host) {
      const Task task =
          task_over(spec_.op, even_chunks(elements(), size_of(host)), seat_of(speaker_of(host)));
      deepest = std::max(deepest, add(spec_.inner, task, ranks_on(host)));
    }
    total_.depth += deepest;
  }
  void between_speakers() {
    std::vector<Rank> members;
    for (int host = 0; host < hosts(); ++host) members.push_back(speaker_of(host));
    const Rank root = spec_.op == Op::barrier ? 0 : host_of(spec_.root);
    total_.depth += add(spec_.outer, task_over(spec_.op, even_chunks(elements(), hosts()), root), members);
  }

  void send_blocks() {
    for (Rank origin = 0; origin < spec_.world; ++origin) {
      for (Rank destination = 0; destination < spec_.world; ++destination) send_block(origin, destination);
    }
    int inside = 0;
    for (int host = 0; host < hosts(); ++host) {
      inside = std::max(inside, depth_of_ways(spec_.inner, grid_of(size_of(host))));
    }
    const bool hands_out = hosts() > 1 && largest_host() > owners_;
    total_.depth = inside + depth_of_ways(spec_.outer, grid_of(hosts())) + (hands_out ? 1 : 0);
  }
  // To the owner that speaks for the destination's seat, from host to host, and out to the destination.
  void send_block(Rank origin, Rank destination) {
    const int from = host_of(origin);
    const int to = host_of(destination);
    const int seat = seat_of(destination);
    const int owner = seat % owners_;
    for (const int at :
         way_of(spec_.inner, seat_of(origin), from == to ? seat : owner, grid_of(size_of(from)))) {
      pass_on(first_of(from) + at);
    }
    if (from == to) return;
    for (const int host : way_of(spec_.outer, from, to, grid_of(hosts()))) pass_on(first_of(host) + owner);
    if (seat != owner) pass_on(first_of(to) + owner);
  }
  void pass_on(Rank rank) { total_.elements_sent[static_cast<std::size_t>(rank)] += spec_.count; }

  const CollectiveSpec& spec_;
  std::vector<Rank> first_;  // of each host
  int owners_ = 1;
  PredictedCost total_;
};

}  // namespace

PredictedCost part_by_table(Algorithm algorithm, const Task& task) {
  if (task.world() == 1 || (task.count == 0 && task.op != Op::barrier)) {
    return {.elements_sent = Sizes(task.chunks.size(), 0)};
  }
  if (algorithm == Algorithm::tree) return tree_by_table(task);
  if (algorithm == Algorithm::mesh) return mesh_by_table(task);
  return flat_algorithm(algorithm).formula(task);
}

PredictedCost hierarchical_by_table(const CollectiveSpec& spec) {
  return HierarchyTable(spec).cost();
}

}  // namespace lockstep::schedule::testing
