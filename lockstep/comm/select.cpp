// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/select.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "lockstep/comm/contract.h"
#include "lockstep/schedule/collective/cost.h"

namespace lockstep::comm {
namespace {

using schedule::Algorithm;
using schedule::CollectiveSpec;
using schedule::Op;

constexpr std::array kAlgorithms = {Algorithm::direct, Algorithm::one_shot, Algorithm::halving_doubling,
                                    Algorithm::ring,   Algorithm::tree,     Algorithm::hierarchical,
                                    Algorithm::mesh};

// The parts of hierarchies that are worth rating. Inside a host nothing is better than direct but for tiny
// buffers, where the network decides; between hosts it depends on the size and on the price of a message.
constexpr Algorithm kInner = Algorithm::direct;
constexpr std::array kOuter = {Algorithm::direct, Algorithm::one_shot, Algorithm::halving_doubling,
                               Algorithm::ring, Algorithm::tree};

constexpr double kBytesPerGigabyteMicrosecond = 1e3;

// Segments trade the latency of more messages for the overlap of transfers along a chain of `depth` ranks:
// (bytes / s + depth) * (latency + s / bandwidth) is least at s = sqrt(bytes * latency * bandwidth / depth).
std::size_t segment_elements(std::size_t bytes, std::size_t element_bytes, int depth, const Link& link) {
  const double best = std::sqrt(static_cast<double>(bytes) * link.latency_us * link.gigabytes_per_second *
                                kBytesPerGigabyteMicrosecond / std::max(1, depth));
  const double bounded = std::clamp(best, 16.0 * 1024, 1024.0 * 1024);
  return static_cast<std::size_t>(bounded) / element_bytes;
}

// Of several messages in which a rank sends its lanes all but the last wait at the receiver. In parts of this
// size they stay in its caches.
constexpr std::size_t kLanePartBytes = std::size_t{1} << 20;

bool sends_lanes_in_several_messages(const std::vector<Subtree>& pieces) {
  return !pieces.empty() && complete_subtrees(pieces.front().first, pieces.back().end()).size() > 1;
}

// Between hosts the wire is slower than memory, and another round costs more than it saves.
std::size_t lane_segment_elements(const CollectiveSpec& spec, std::size_t element_bytes, bool one_host) {
  const bool pays = one_host && std::ranges::any_of(spec.pieces, sends_lanes_in_several_messages);
  return pays ? kLanePartBytes / element_bytes : 0;
}

// Copying one block from a message or to one, beside its bytes.
constexpr double kCopyUs = 0.05;

// All but these pass blocks on from rank to rank, each time with others in one message.
bool relays(const CollectiveSpec& spec) {
  return spec.op == Op::all_to_all && spec.algorithm != Algorithm::direct &&
         spec.algorithm != Algorithm::one_shot;
}

// Messages that the busiest of `world` ranks handles, sent and received alike.
double messages_of(Op op, Algorithm algorithm, int world, int depth) {
  const int peers = world - 1;
  switch (algorithm) {
    case Algorithm::direct:
      return op == Op::all_reduce ? 4.0 * peers : 2.0 * peers;
    case Algorithm::one_shot:
      return 2.0 * peers;
    case Algorithm::ring:
    case Algorithm::mesh:
      return op == Op::all_to_all ? 4.0 * depth : 2.0 * depth;  // in both directions
    default:
      return 2.0 * depth;
  }
}

// Of an all_to_all: directly among the ranks of the host, and what owners hand out; then among hosts.
double hierarchical_messages_us(const std::vector<int>& hosts, const LinkModel& model) {
  const auto [smallest, largest] = std::minmax_element(hosts.begin(), hosts.end());
  const double inside = 2.0 * (*largest - 1) + (*largest - *smallest);
  const double between = 2.0 * (static_cast<double>(hosts.size()) - 1);
  return inside * model.memory.message_us + between * model.network.message_us;
}

// How much of what a rank sends leaves its host, and how many ranks of a host do so at once.
struct Crossing {
  double fraction = 0;
  double ranks = 0;
};

// All that the ranks of the largest host have for those of other hosts in an all_to_all.
double leaving_elements(const CollectiveSpec& spec, double local) {
  return local * (spec.world - local) * static_cast<double>(spec.count);
}

// `sent`: the elements that the busiest rank sends. Of a hierarchy only in an all_to_all.
Crossing crossing_of(const CollectiveSpec& spec, const std::vector<int>& ranks_per_host, double sent) {
  if (ranks_per_host.size() == 1) return {};
  const double local = *std::max_element(ranks_per_host.begin(), ranks_per_host.end());
  // At least so many times what the busiest rank sends.
  const double leaving = spec.op == Op::all_to_all && sent > 0 ? leaving_elements(spec, local) / sent : 0;
  switch (spec.algorithm) {
    case Algorithm::ring:
    case Algorithm::tree:
    case Algorithm::mesh:
      return {.fraction = 1, .ranks = std::max(1.0, leaving)};  // neighbours: one rank at each end of a host
    case Algorithm::hierarchical: {
      const double owners = *std::min_element(ranks_per_host.begin(), ranks_per_host.end());
      return {.fraction = std::min(1.0, leaving / owners), .ranks = owners};
    }
    default:
      return {.fraction = (spec.world - local) / std::max(1.0, spec.world - 1.0), .ranks = local};
  }
}

double messages_us(const CollectiveSpec& spec, int depth, const std::vector<int>& hosts,
                   const Crossing& crossing, const LinkModel& model) {
  if (spec.algorithm == Algorithm::hierarchical) return hierarchical_messages_us(hosts, model);
  // Who sends to everyone sends to those beside it through memory.
  const bool to_everyone = spec.algorithm == Algorithm::direct || spec.algorithm == Algorithm::one_shot;
  const double between = hosts.size() == 1 ? 0 : to_everyone ? crossing.fraction : 1;
  return messages_of(spec.op, spec.algorithm, spec.world, depth) *
         (between * model.network.message_us + (1 - between) * model.memory.message_us);
}

double us_for(double bytes, double gigabytes_per_second) {
  return bytes / (gigabytes_per_second * kBytesPerGigabyteMicrosecond);
}

Candidate rate_whole(const CollectiveSpec& spec, DType dtype, const std::vector<int>& hosts,
                     const LinkModel& model) {
  const schedule::PredictedCost cost = schedule::predict_cost(spec);
  const auto element_bytes = static_cast<double>(size_of(dtype));
  const auto sent_elements =
      static_cast<double>(*std::max_element(cost.elements_sent.begin(), cost.elements_sent.end()));
  const double sent = element_bytes * sent_elements;
  const double combined = element_bytes * static_cast<double>(cost.elements_combined) / spec.world;
  const Crossing crossing = crossing_of(spec, hosts, sent_elements);
  const Link& slowest = hosts.size() > 1 ? model.network : model.memory;

  Candidate candidate;
  candidate.latency_us = cost.depth * slowest.latency_us;
  candidate.messages_us = messages_us(spec, cost.depth, hosts, crossing, model);
  candidate.memory_us = us_for(sent * (1 - crossing.fraction), model.memory.gigabytes_per_second);
  if (relays(spec) && spec.count > 0) {
    candidate.messages_us += kCopyUs * sent_elements / static_cast<double>(spec.count);
    candidate.memory_us += us_for(sent, model.memory.gigabytes_per_second);
  }
  candidate.network_us =
      us_for(sent * crossing.fraction * crossing.ranks, model.network.gigabytes_per_second);
  candidate.add_us = us_for(combined, model.add_gigabytes_per_second);
  return candidate;
}

// What the ranks of the busiest host send together.
std::size_t most_of_a_host(const std::vector<std::size_t>& sent, const std::vector<int>& ranks_per_host) {
  std::size_t most = 0;
  auto next = sent.begin();
  for (const int ranks : ranks_per_host) {
    most = std::max(most, std::accumulate(next, next + ranks, std::size_t{0}));
    next += ranks;
  }
  return most;
}

// As a part a tree is not pipelined: at every step a rank waits for the half of its bytes that is in one of
// the two trees.
double waiting_factor(Algorithm part, int depth) {
  return part == Algorithm::tree ? std::max(1.0, depth / 2.0) : 1.0;
}

// Phases that wait for each other, each on the links of its level.
Candidate rate_phases(const CollectiveSpec& spec, DType dtype, const std::vector<int>& hosts,
                      const LinkModel& model) {
  const auto element_bytes = static_cast<double>(size_of(dtype));
  Candidate candidate;
  for (const schedule::PhaseCost& phase : schedule::predict_phases(spec)) {
    const auto& [between, op, world, cost] = phase;
    const Algorithm part = between ? spec.outer : spec.inner;
    const Link& link = between ? model.network : model.memory;
    const std::size_t sent =
        between ? most_of_a_host(cost.elements_sent, hosts) : *std::ranges::max_element(cost.elements_sent);
    candidate.latency_us += cost.depth * link.latency_us;
    candidate.messages_us += messages_of(op, part, world, cost.depth) * link.message_us;
    (between ? candidate.network_us : candidate.memory_us) +=
        us_for(element_bytes * static_cast<double>(sent) * waiting_factor(part, cost.depth),
               link.gigabytes_per_second);
    candidate.add_us += us_for(element_bytes * static_cast<double>(cost.elements_combined) / spec.world,
                               model.add_gigabytes_per_second);
  }
  return candidate;
}

Candidate rate(CollectiveSpec spec, DType dtype, const Topology& topology, const LinkModel& model) {
  const std::vector<int> hosts = topology.ranks_per_host();
  const bool in_phases = spec.algorithm == Algorithm::hierarchical && spec.op != Op::all_to_all;
  Candidate candidate =
      in_phases ? rate_phases(spec, dtype, hosts, model) : rate_whole(spec, dtype, hosts, model);
  candidate.spec = std::move(spec);
  return candidate;
}

// Every algorithm that can do the operation among ranks so placed, hierarchies with several pairs of parts.
std::vector<AlgorithmName> algorithms_for(const CollectiveSpec& wanted, const Topology& topology) {
  if (!wanted.pieces.empty()) return {{.algorithm = Algorithm::direct}};
  std::vector<AlgorithmName> names;
  for (const Algorithm algorithm : kAlgorithms) {
    if (!schedule::supports(algorithm, wanted.op)) continue;
    if (algorithm != Algorithm::hierarchical) {
      names.push_back({.algorithm = algorithm});
      continue;
    }
    if (!topology.has_two_levels()) continue;
    for (const Algorithm outer : kOuter) {
      // What blocks cost that others than direct pass on between hosts is not in the model.
      const bool rated = wanted.op != Op::all_to_all || outer == Algorithm::direct;
      if (rated && schedule::supports(outer, wanted.op))
        names.push_back({.algorithm = algorithm, .inner = kInner, .outer = outer});
    }
  }
  return names;
}

}  // namespace

std::vector<int> Topology::ranks_per_host() const {
  std::vector<int> counts;
  std::vector<int> seen;
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
    if (rank > 0 && host_of[rank] == host_of[rank - 1]) {
      ++counts.back();
      continue;
    }
    if (std::find(seen.begin(), seen.end(), host_of[rank]) != seen.end())
      return std::vector<int>(host_of.size(), 1);
    seen.push_back(host_of[rank]);
    counts.push_back(1);
  }
  return counts;
}

bool Topology::is_scattered() const {
  return ranks_per_host().size() > std::set<int>(host_of.begin(), host_of.end()).size();
}

bool Topology::has_two_levels() const {
  const std::vector<int> hosts = ranks_per_host();
  return hosts.size() > 1 && *std::max_element(hosts.begin(), hosts.end()) > 1;
}

bool is_exact(const AlgorithmName& name, const Topology& topology) {
  CollectiveSpec spec;
  spec.algorithm = name.algorithm;
  spec.inner = name.inner;
  spec.outer = name.outer;
  spec.ranks_per_host = topology.ranks_per_host();
  return schedule::is_exact(spec);
}

CollectiveSpec complete_spec(CollectiveSpec spec, DType dtype, const Topology& topology,
                             const LinkModel& model) {
  const std::vector<int> hosts = topology.ranks_per_host();
  const Link& slowest = hosts.size() > 1 ? model.network : model.memory;
  switch (spec.algorithm) {
    case Algorithm::tree:
      spec.segment_elements = segment_elements(spec.count * size_of(dtype), size_of(dtype),
                                               std::bit_width(static_cast<unsigned>(spec.world)), slowest);
      break;
    case Algorithm::mesh:
      if (spec.grid == schedule::GridShape{}) spec.grid = schedule::squarest_grid(spec.world, true);
      spec.segment_elements = segment_elements(spec.count * size_of(dtype), size_of(dtype),
                                               spec.grid.rows + spec.grid.columns, slowest);
      break;
    case Algorithm::hierarchical:
      spec.ranks_per_host = hosts;
      break;
    case Algorithm::direct:
      spec.segment_elements = lane_segment_elements(spec, size_of(dtype), hosts.size() == 1);
      break;
    default:
      break;
  }
  return spec;
}

std::vector<Candidate> candidates(const CollectiveSpec& wanted, DType dtype, const Topology& topology,
                                  const LinkModel& model, bool exact) {
  std::vector<Candidate> rated;
  for (const AlgorithmName& name : algorithms_for(wanted, topology)) {
    CollectiveSpec spec = wanted;
    spec.algorithm = name.algorithm;
    spec.inner = name.inner;
    spec.outer = name.outer;
    spec.grid = {};
    spec = complete_spec(std::move(spec), dtype, topology, model);
    if (exact && reduces(wanted.op) && !schedule::is_exact(spec)) continue;
    rated.push_back(rate(std::move(spec), dtype, topology, model));
  }
  // Stable: among equals the order of kAlgorithms and kOuter decides, and it is the same on every rank.
  std::stable_sort(rated.begin(), rated.end(),
                   [](const Candidate& a, const Candidate& b) { return a.total_us() < b.total_us(); });
  return rated;
}

}  // namespace lockstep::comm
