// SPDX-License-Identifier: Apache-2.0
//
// What a collective promises, apart from how it is done.
//
// The caller's buffers, for `count` elements on each of `world` ranks; chunk r is chunk_range(count, world,
// r). What is not named ends unspecified.
//
//   all_reduce      buffer 0 (count): every rank's values in, their reduction out, on every rank.
//   reduce_scatter  buffer 0 (count): values in; on rank r chunk r of the reduction out.
//   all_gather      buffer 0 (count): on rank r chunk r in; all chunks out.
//   broadcast       buffer 0 (count): the root's values out on every rank.
//   reduce          buffer 0 (count): values in; the reduction out on the root.
//   all_to_all      buffers 0 in, 1 out (world * count each): block p of rank r becomes block r of rank p.
//   barrier         no buffer of the caller's; no rank leaves before every rank has entered.
//
// With lanes (all_reduce and reduce_scatter): buffers 0..k-1 (count each) hold the partial sums of the k
// pieces the rank brings; a rank without pieces has just buffer 0. The result is in buffer 0; the others end
// unspecified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/mesh/lanes.h"

namespace lockstep::schedule {

// The values appear in frames: never renumber.
enum class Op : std::uint8_t {
  all_reduce = 0,
  reduce_scatter = 1,
  all_gather = 2,
  broadcast = 3,
  reduce = 4,
  all_to_all = 5,
  barrier = 6
};

enum class Algorithm : std::uint8_t {
  ring = 0,
  tree = 1,              // double binary tree, pipelined in segments
  halving_doubling = 2,  // binary blocks: any world, canonical order
  direct = 3,            // everyone exchanges chunks with everyone; canonical order; in place
  one_shot = 4,  // everyone sends everything to everyone: one message deep, for small counts; canonical order
  mesh = 5,      // a grid or torus: neighbours only
  hierarchical = 6  // one algorithm inside hosts, one between them
};

std::string_view name_of(Op op);
std::string_view name_of(Algorithm algorithm);
// Throw UsageError listing the accepted names.
Op parse_op(std::string_view name);
Algorithm parse_algorithm(std::string_view name);
Algorithm parse_level_algorithm(std::string_view name);  // of a hierarchy: any other

// A grid of ranks, row-major: rank = row * columns + column. A torus also joins the ends of rows and columns.
struct GridShape {
  int rows = 1;
  int columns = 1;
  bool torus = false;

  bool operator==(const GridShape&) const = default;
};

// The most even grid that holds `world` ranks.
GridShape squarest_grid(int world, bool torus);

// Everything that determines the programs of a collective; equal specs give equal programs on every rank.
struct CollectiveSpec {
  Op op = Op::all_reduce;
  Algorithm algorithm = Algorithm::direct;
  int world = 1;
  std::size_t count = 0;
  Rank root = 0;                     // broadcast and reduce
  std::size_t segment_elements = 0;  // how finely tree, mesh and lanes are cut; 0: not at all
  GridShape grid;                    // mesh: rows * columns == world
  std::vector<int> ranks_per_host;   // hierarchical: consecutive ranks share a host; sums to world, each >= 1
  Algorithm inner = Algorithm::direct;  // hierarchical: inside a host
  Algorithm outer = Algorithm::direct;  // hierarchical: between hosts; must support `op`
  // Lane tree (algorithm direct): the pieces that each rank brings; together they cover all lanes once, in
  // order. Empty: no lanes, every rank brings one value.
  std::vector<std::vector<Subtree>> pieces;

  bool operator==(const CollectiveSpec&) const = default;
};

// Can this algorithm do this operation? If not, a UsageError says which algorithms can.
bool supports(Algorithm algorithm, Op op);

// True if the order of addition is the canonical tree (canonical.h) whatever the world: exact collectives.
bool is_exact(Algorithm algorithm);

// The same of everything that a valid spec says, so that it may be true of a hierarchy: if both of its parts
// are exact and the canonical tree over its hosts, with those over their ranks for leaves, is the canonical
// tree over all ranks. So it is on any number of hosts of one power-of-two size, the last of which may be
// smaller.
bool is_exact(const CollectiveSpec& spec);

// Throws UsageError naming the first field that makes no sense.
void validate(const CollectiveSpec& spec);

}  // namespace lockstep::schedule
