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
//
// all_to_all has buffers of another kind, and is in hosts_itinerary.cpp.
#include "lockstep/schedule/collective/hierarchical.h"

#include <algorithm>
#include <utility>

#include "lockstep/schedule/collective/hosts.h"

namespace lockstep::schedule {
namespace {

using View = std::vector<Range>;

std::size_t size_of(const View& view) {
  std::size_t size = 0;
  for (const Range& range : view) size += range.size();
  return size;
}

class Hierarchy {
 public:
  explicit Hierarchy(const CollectiveSpec& spec)
      : spec_(spec), hosts_(spec.ranks_per_host), owners_(owners_per_host(spec)) {}

  std::vector<Phase> all_reduce() const {
    std::vector<View> shares;
    Phase between;
    for (Range share : even_chunks(spec_.count, owners_)) {
      const Task task{.op = Op::all_reduce, .chunks = even_chunks(share.size(), hosts_.hosts())};
      between.push_back(outer(task, {hosts_.ranks_in_seat(static_cast<int>(shares.size())), {share}}));
      shares.push_back({share});
    }
    return {scatter_inside(shares), std::move(between), gather_inside(shares)};
  }

  std::vector<Phase> reduce_scatter() const {
    std::vector<Phase> phases = {scatter_inside(shares_of_chunks()), between_owners(Op::reduce_scatter)};
    for (int seat = owners_; seat < largest_host(); seat += owners_) {
      phases.push_back(hand_chunks(seat, seat + owners_, Op::broadcast));
    }
    return phases;
  }

  std::vector<Phase> all_gather() const {
    return {hand_chunks(owners_, largest_host(), Op::all_gather), between_owners(Op::all_gather),
            gather_inside(shares_of_chunks())};
  }

  std::vector<Phase> broadcast() const { return {between_speakers(), inside_with_speaker()}; }
  std::vector<Phase> reduce() const { return {inside_with_speaker(), between_speakers()}; }

  std::vector<Phase> barrier() const {
    Phase inside;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      const Task task{.op = Op::barrier, .chunks = even_chunks(0, hosts_.size[host])};
      inside.push_back(inner(task, {hosts_.ranks_of(host), {}}));
    }
    const Task task{.op = Op::barrier, .chunks = even_chunks(0, hosts_.hosts())};
    return {inside, {outer(task, {hosts_.ranks_in_seat(0), {}})}, inside};
  }

 private:
  int largest_host() const { return *std::max_element(hosts_.size.begin(), hosts_.size.end()); }

  Range chunk_of(int host, int seat) const {
    return chunk_range(spec_.count, spec_.world, hosts_.first[host] + seat);
  }

  // What an owner looks after in one host: the chunks of every owners_-th seat from its own on.
  View chunks_for(int owner, int host) const {
    View chunks;
    for (int seat = owner; seat < hosts_.size[host]; seat += owners_) {
      const Range chunk = chunk_of(host, seat);
      if (!chunk.empty()) chunks.push_back(chunk);
    }
    return chunks;
  }
  View share_of(int owner) const {
    View share;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      const View chunks = chunks_for(owner, host);
      share.insert(share.end(), chunks.begin(), chunks.end());
    }
    return share;
  }
  std::vector<View> shares_of_chunks() const {
    std::vector<View> shares;
    shares.reserve(owners_);
    for (int owner = 0; owner < owners_; ++owner) shares.push_back(share_of(owner));
    return shares;
  }

  Phase between_owners(Op op) const {
    Phase phase;
    for (int owner = 0; owner < owners_; ++owner) {
      Task task{.op = op};
      std::size_t begin = 0;
      for (int host = 0; host < hosts_.hosts(); ++host) {
        const std::size_t end = begin + size_of(chunks_for(owner, host));
        task.chunks.push_back({begin, end});
        begin = end;
      }
      phase.push_back(outer(std::move(task), {hosts_.ranks_in_seat(owner), share_of(owner)}));
    }
    return phase;
  }

  // With one owner a rooted operation moves the same elements, better divided.
  Phase scatter_inside(const std::vector<View>& shares) const {
    return with_owners(owners_ == 1 ? Op::reduce : Op::reduce_scatter, shares);
  }
  Phase gather_inside(const std::vector<View>& shares) const {
    return with_owners(owners_ == 1 ? Op::broadcast : Op::all_gather, shares);
  }
  Phase with_owners(Op op, const std::vector<View>& shares) const {
    View view;
    for (const View& share : shares) view.insert(view.end(), share.begin(), share.end());
    Phase phase;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      Task task{.op = op, .finish = hosts_.hosts() == 1};
      task.chunks = owners_ == 1 ? even_chunks(spec_.count, hosts_.size[host])
                                 : chunks_of_shares(shares, hosts_.size[host]);
      phase.push_back(inner(std::move(task), {hosts_.ranks_of(host), view}));
    }
    return phase;
  }
  // Shares are laid one after the other; seats that own none have an empty chunk.
  static std::vector<Range> chunks_of_shares(const std::vector<View>& shares, int seats) {
    std::vector<Range> chunks;
    std::size_t begin = 0;
    for (int seat = 0; seat < seats; ++seat) {
      const std::size_t size = seat < static_cast<int>(shares.size()) ? size_of(shares[seat]) : 0;
      chunks.push_back({begin, begin + size});
      begin += size;
    }
    return chunks;
  }

  // Between a seat without a share and the owner that looks after its chunk, one message: the owner's for
  // Op::broadcast, the seat's for Op::all_gather. For the seats from `begin` on, before `end`.
  Phase hand_chunks(int begin, int end, Op op) const {
    Phase phase;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      for (int seat = begin; seat < std::min(end, hosts_.size[host]); ++seat) {
        const Range chunk = chunk_of(host, seat);
        const Rank first = hosts_.first[host];
        Task task{.op = Op::broadcast, .count = chunk.size(), .chunks = even_chunks(chunk.size(), 2)};
        task.root = op == Op::broadcast ? 0 : 1;
        phase.push_back({flat_algorithm(Algorithm::one_shot),
                         std::move(task),
                         {{first + seat % owners_, first + seat}, {chunk}}});
      }
    }
    return phase;
  }

  // In a rooted operation one rank speaks for each host: the root for its own, else seat 0.
  std::vector<Rank> speakers() const {
    std::vector<Rank> ranks = hosts_.first;
    ranks[hosts_.host_of(spec_.root)] = spec_.root;
    return ranks;
  }
  Phase inside_with_speaker() const {
    Phase phase;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      const Task task{.op = spec_.op,
                      .root = speakers()[host] - hosts_.first[host],
                      .chunks = even_chunks(spec_.count, hosts_.size[host]),
                      .finish = hosts_.hosts() == 1};
      phase.push_back(inner(task, {hosts_.ranks_of(host), {{0, spec_.count}}}));
    }
    return phase;
  }
  Phase between_speakers() const {
    const Task task{.op = spec_.op,
                    .root = hosts_.host_of(spec_.root),
                    .chunks = even_chunks(spec_.count, hosts_.hosts())};
    return {outer(task, {speakers(), {{0, spec_.count}}})};
  }

  Part inner(Task task, Place place) const { return part(spec_.inner, std::move(task), std::move(place)); }
  Part outer(Task task, Place place) const { return part(spec_.outer, std::move(task), std::move(place)); }
  Part part(Algorithm algorithm, Task task, Place place) const {
    task.count = task.chunks.back().end;
    task.segment_elements = spec_.segment_elements;
    task.grid = part_grid(task.world());
    return {flat_algorithm(algorithm), std::move(task), std::move(place)};
  }

  const CollectiveSpec& spec_;
  HostLayout hosts_;
  int owners_;
};

}  // namespace

std::vector<Phase> hierarchical_phases(const CollectiveSpec& spec) {
  const Hierarchy hierarchy(spec);
  switch (spec.op) {
    case Op::all_reduce:
      return hierarchy.all_reduce();
    case Op::reduce_scatter:
      return hierarchy.reduce_scatter();
    case Op::all_gather:
      return hierarchy.all_gather();
    case Op::broadcast:
      return hierarchy.broadcast();
    case Op::reduce:
      return hierarchy.reduce();
    default:
      return hierarchy.barrier();
  }
}

}  // namespace lockstep::schedule
