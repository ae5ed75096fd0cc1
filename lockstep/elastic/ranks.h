// SPDX-License-Identifier: Apache-2.0
//
// Who gets a place in a generation, and which.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/elastic/message.h"

namespace lockstep::elastic {

struct Candidate {
  MemberId member = 0;
  std::string host;
};

struct GenerationSize {
  int least = 1;
  int most = 1;
  int multiple = 1;
};

// How the ranks of a world make replicas of a model, in the order of Mesh: `ranks` of them one replica, as
// many behind each other as `pipeline` says.
struct ReplicaShape {
  int ranks = 1;
  int pipeline = 1;
};
// All of the replica that the rank is in.
std::vector<Rank> replica_with(Rank rank, int world, const ReplicaShape& shape);

// How many of so many get a place; 0: there are too few.
std::size_t places_for(std::size_t candidates, const GenerationSize& size);

// Takes as many as there are places for, from the first on, and gives them by rank: in their order, except
// that those of one host stand together, where the first of them stands.
std::vector<MemberId> choose_members(std::vector<Candidate> candidates, const GenerationSize& size);

}  // namespace lockstep::elastic
