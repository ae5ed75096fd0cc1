// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/select.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

// Messages that the busiest rank handles, sent and received alike.
double messages_of(const CollectiveSpec& spec, int depth) {
  const int peers = spec.world - 1;
  switch (spec.algorithm) {
    case Algorithm::direct:
      return spec.op == Op::all_reduce ? 4.0 * peers : 2.0 * peers;
    case Algorithm::one_shot:
      return 2.0 * peers;
    case Algorithm::ring:
    case Algorithm::mesh:
      return spec.op == Op::all_to_all ? 4.0 * depth : 2.0 * depth;  // in both directions
    default:
      return 2.0 * depth;
  }
}

double messages_us(const CollectiveSpec& spec, int depth, const std::vector<int>& hosts,
                   const LinkModel& model) {
  if (spec.op != Op::all_to_all || spec.algorithm != Algorithm::hierarchical) {
    return messages_of(spec, depth) * (hosts.size() > 1 ? model.network : model.memory).message_us;
  }
  // Directly among the ranks of the host, and what owners hand out; then among hosts.
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

// `sent`: the elements that the busiest rank sends.
Crossing crossing_of(const CollectiveSpec& spec, const std::vector<int>& ranks_per_host, double sent) {
  if (ranks_per_host.size() == 1) return {};
  const double local = *std::max_element(ranks_per_host.begin(), ranks_per_host.end());
  const double hosts = static_cast<double>(ranks_per_host.size());
  // At least so many times what the busiest rank sends.
  const double leaving = spec.op == Op::all_to_all && sent > 0 ? leaving_elements(spec, local) / sent : 0;
  switch (spec.algorithm) {
    case Algorithm::ring:
    case Algorithm::tree:
    case Algorithm::mesh:
      return {.fraction = 1, .ranks = std::max(1.0, leaving)};  // neighbours: one rank at each end of a host
    case Algorithm::hierarchical:
      if (spec.op == Op::all_to_all) {
        const double owners = *std::min_element(ranks_per_host.begin(), ranks_per_host.end());
        return {.fraction = std::min(1.0, leaving / owners), .ranks = owners};
      }
      // The share that crosses is what one exchange between hosts needs; it is spread over the local ranks.
      return {.fraction = (hosts - 1) / hosts / local, .ranks = local};
    default:
      return {.fraction = (spec.world - local) / std::max(1.0, spec.world - 1.0), .ranks = local};
  }
}

Candidate rate(CollectiveSpec spec, DType dtype, const Topology& topology, const LinkModel& model) {
  const std::vector<int> hosts = topology.ranks_per_host();
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
  candidate.messages_us = messages_us(spec, cost.depth, hosts, model);
  candidate.memory_us =
      sent * (1 - crossing.fraction) / (model.memory.gigabytes_per_second * kBytesPerGigabyteMicrosecond);
  if (relays(spec) && spec.count > 0) {
    candidate.messages_us += kCopyUs * sent_elements / static_cast<double>(spec.count);
    candidate.memory_us += sent / (model.memory.gigabytes_per_second * kBytesPerGigabyteMicrosecond);
  }
  candidate.network_us = sent * crossing.fraction * crossing.ranks /
                         (model.network.gigabytes_per_second * kBytesPerGigabyteMicrosecond);
  candidate.add_us = combined / (model.add_gigabytes_per_second * kBytesPerGigabyteMicrosecond);
  candidate.spec = std::move(spec);
  return candidate;
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
  for (Algorithm algorithm : kAlgorithms) {
    if (!schedule::supports(algorithm, wanted.op)) continue;
    if (algorithm == Algorithm::hierarchical && !topology.has_two_levels()) continue;
    if (!wanted.pieces.empty() && algorithm != Algorithm::direct) continue;
    if (exact && reduces(wanted.op) && !schedule::is_exact(algorithm)) continue;
    CollectiveSpec spec = wanted;
    spec.algorithm = algorithm;
    spec.grid = {};
    rated.push_back(rate(complete_spec(std::move(spec), dtype, topology, model), dtype, topology, model));
  }
  // Stable: among equals the order of kAlgorithms decides, and it is the same on every rank.
  std::stable_sort(rated.begin(), rated.end(),
                   [](const Candidate& a, const Candidate& b) { return a.total_us() < b.total_us(); });
  return rated;
}

}  // namespace lockstep::comm
