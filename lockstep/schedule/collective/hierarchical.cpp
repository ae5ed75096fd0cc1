// SPDX-License-Identifier: Apache-2.0
//
// hierarchical: one algorithm inside each host, another between hosts. Every host has the same number of
// *owners* (hosts.h), its first seats; each owner speaks for its host about its own *share* of the elements,
// to the owners in the same seat of the other hosts.
//
//   all_reduce       scatter the sums to the owners of the host; all_reduce each share between hosts; gather.
//   reduce_scatter   scatter the sums to the owners; reduce_scatter each share between hosts; an owner hands
//                    the seats without a share of their own their chunks.
//   all_gather       the same backwards.
//   broadcast        between one rank per host, then inside; reduce the same backwards.
//   barrier          inside, between seats 0, inside.
#include <utility>

#include "lockstep/schedule/collective/compose.h"
#include "lockstep/schedule/collective/hosts.h"
#include "lockstep/schedule/collective/moves.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {
namespace {

class Hierarchy {
 public:
  Hierarchy(const CollectiveSpec& spec, Rank rank)
      : spec_(spec),
        hosts_(spec.ranks_per_host),
        host_(hosts_.host_of(rank)),
        seat_(rank - hosts_.first[host_]),
        owners_(owners_per_host(spec)),
        program_(empty_program({.op = spec.op,
                                .rank = rank,
                                .count = spec.count,
                                .chunks = even_chunks(spec.count, spec.world)})) {}

  Program all_reduce() && {
    std::vector<View> shares;
    for (Range share : even_chunks(spec_.count, owners_)) shares.push_back({share});
    scatter_inside(shares);
    if (seat_ < owners_) {
      add_outer(Op::all_reduce, {.chunks = even_chunks(size_of(shares[seat_]), hosts_.hosts())},
                shares[seat_]);
    }
    gather_inside(shares);
    return std::move(program_);
  }

  Program reduce_scatter() && {
    const std::vector<View> shares = shares_of_chunks();
    scatter_inside(shares);
    if (seat_ < owners_) {
      add_outer(Op::reduce_scatter, {.chunks = share_by_host()}, shares[seat_]);
    }
    Round hand_out;
    for (int seat = owners_; seat < hosts_.size[host_]; ++seat) {
      const Slice chunk = data(chunk_of(host_, seat));
      if (seat % owners_ == seat_) add(hand_out, send(chunk, {hosts_.first[host_] + seat}));
      if (seat == seat_) add(hand_out, receive(hosts_.first[host_] + seat % owners_, chunk));
    }
    add(program_, std::move(hand_out));
    return std::move(program_);
  }

  Program all_gather() && {
    const std::vector<View> shares = shares_of_chunks();
    Round hand_in;
    for (int seat = owners_; seat < hosts_.size[host_]; ++seat) {
      const Slice chunk = data(chunk_of(host_, seat));
      if (seat % owners_ == seat_) add(hand_in, receive(hosts_.first[host_] + seat, chunk));
      if (seat == seat_) add(hand_in, send(chunk, {hosts_.first[host_] + seat % owners_}));
    }
    add(program_, std::move(hand_in));
    if (seat_ < owners_) {
      add_outer(Op::all_gather, {.chunks = share_by_host()}, shares[seat_]);
    }
    gather_inside(shares);
    return std::move(program_);
  }

  Program broadcast() && {
    add_between_speakers(Op::broadcast);
    add_inside_to_speaker(Op::broadcast);
    return std::move(program_);
  }

  Program reduce() && {
    add_inside_to_speaker(Op::reduce);
    add_between_speakers(Op::reduce);
    return std::move(program_);
  }

  Program barrier() && {
    const std::vector<Range> nothing_inside(hosts_.size[host_], Range{});
    const std::vector<Range> nothing_outside(hosts_.hosts(), Range{});
    add_inner(Op::barrier, {.chunks = nothing_inside}, {});
    if (seat_ == 0) add_outer(Op::barrier, {.chunks = nothing_outside}, {});
    add_inner(Op::barrier, {.chunks = nothing_inside}, {});
    return std::move(program_);
  }

 private:
  using View = std::vector<Range>;

  static std::size_t size_of(const View& view) {
    std::size_t size = 0;
    for (const Range& range : view) size += range.size();
    return size;
  }

  Range chunk_of(int host, int seat) const {
    return chunk_range(spec_.count, spec_.world, hosts_.first[host] + seat);
  }

  // What owner `seat` looks after in one host: the chunks of every owners_-th seat from its own on.
  View chunks_for(int owner, int host) const {
    View chunks;
    for (int seat = owner; seat < hosts_.size[host]; seat += owners_) {
      const Range chunk = chunk_of(host, seat);
      if (!chunk.empty()) chunks.push_back(chunk);
    }
    return chunks;
  }
  std::vector<View> shares_of_chunks() const {
    std::vector<View> shares(owners_);
    for (int owner = 0; owner < owners_; ++owner) {
      for (int host = 0; host < hosts_.hosts(); ++host) {
        for (Range chunk : chunks_for(owner, host)) shares[owner].push_back(chunk);
      }
    }
    return shares;
  }
  // This owner's share, in its own coordinates, as it is divided among hosts.
  std::vector<Range> share_by_host() const {
    std::vector<Range> parts;
    std::size_t begin = 0;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      const std::size_t end = begin + size_of(chunks_for(seat_, host));
      parts.push_back({begin, end});
      begin = end;
    }
    return parts;
  }

  // With one owner a rooted operation moves the same elements, better divided.
  void scatter_inside(const std::vector<View>& shares) {
    add_with_owners(owners_ == 1 ? Op::reduce : Op::reduce_scatter, shares);
  }
  void gather_inside(const std::vector<View>& shares) {
    add_with_owners(owners_ == 1 ? Op::broadcast : Op::all_gather, shares);
  }
  void add_with_owners(Op op, const std::vector<View>& shares) {
    View all;
    std::vector<Range> chunks;
    std::size_t begin = 0;
    for (int seat = 0; seat < hosts_.size[host_]; ++seat) {
      const View share = seat < owners_ ? shares[seat] : View{};
      all.insert(all.end(), share.begin(), share.end());
      chunks.push_back({begin, begin + size_of(share)});
      begin += size_of(share);
    }
    if (owners_ == 1) chunks = even_chunks(begin, hosts_.size[host_]);
    add_inner(op, {.chunks = chunks, .finish = hosts_.hosts() == 1}, all);
  }

  // Each host's part in a rooted operation is played by one rank: the root in its own host, else seat 0.
  std::vector<Rank> speakers() const {
    std::vector<Rank> ranks = hosts_.first;
    ranks[hosts_.host_of(spec_.root)] = spec_.root;
    return ranks;
  }
  void add_inside_to_speaker(Op op) {
    const Rank root = speakers()[host_] - hosts_.first[host_];
    add_inner(
        op,
        {.root = root, .chunks = even_chunks(spec_.count, hosts_.size[host_]), .finish = hosts_.hosts() == 1},
        {{0, spec_.count}});
  }
  void add_between_speakers(Op op) {
    const std::vector<Rank> ranks = speakers();
    if (ranks[host_] != program_.rank) return;
    const Task task{.root = hosts_.host_of(spec_.root), .chunks = even_chunks(spec_.count, hosts_.hosts())};
    add_part(spec_.outer, task_for(op, host_, task), {ranks, {{0, spec_.count}}});
  }

  void add_inner(Op op, const Task& task, const View& view) {
    add_part(spec_.inner, task_for(op, seat_, task), {hosts_.ranks_of(host_), view});
  }
  void add_outer(Op op, const Task& task, const View& view) {
    add_part(spec_.outer, task_for(op, host_, task), {hosts_.ranks_in_seat(seat_), view});
  }

  Task task_for(Op op, Rank rank, Task task) const {
    task.op = op;
    task.rank = rank;
    task.count = task.chunks.back().end;
    task.segment_elements = spec_.segment_elements;
    task.grid = squarest_grid(task.world(), spec_.grid.torus);
    return task;
  }
  void add_part(Algorithm algorithm, const Task& task, const Place& place) {
    append(program_, generate_flat(algorithm, task), place);
  }

  const CollectiveSpec& spec_;
  HostLayout hosts_;
  int host_;
  int seat_;
  int owners_;
  Program program_;
};

}  // namespace

Program generate_hierarchical(const CollectiveSpec& spec, Rank rank) {
  Hierarchy hierarchy(spec, rank);
  switch (spec.op) {
    case Op::all_reduce:
      return std::move(hierarchy).all_reduce();
    case Op::reduce_scatter:
      return std::move(hierarchy).reduce_scatter();
    case Op::all_gather:
      return std::move(hierarchy).all_gather();
    case Op::broadcast:
      return std::move(hierarchy).broadcast();
    case Op::reduce:
      return std::move(hierarchy).reduce();
    default:
      return std::move(hierarchy).barrier();
  }
}

}  // namespace lockstep::schedule
