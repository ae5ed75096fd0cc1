// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/ranks.h"

#include <algorithm>

#include "lockstep/mesh/mesh.h"

namespace lockstep::elastic {

std::vector<Rank> replica_with(Rank rank, int world, const ReplicaShape& shape) {
  const MeshShape sizes = {
      .pipeline = shape.pipeline, .data = world / shape.ranks, .tensor = shape.ranks / shape.pipeline};
  const Mesh mesh(world, sizes);
  Coordinates place = mesh.coordinates_of(rank);
  std::vector<Rank> ranks;
  for (place.pipeline = 0; place.pipeline < sizes.pipeline; ++place.pipeline) {
    for (place.tensor = 0; place.tensor < sizes.tensor; ++place.tensor) ranks.push_back(mesh.rank_of(place));
  }
  return ranks;
}

std::size_t places_for(std::size_t candidates, const GenerationSize& size) {
  const std::size_t multiple = static_cast<std::size_t>(size.multiple);
  const std::size_t places = std::min(candidates, static_cast<std::size_t>(size.most)) / multiple * multiple;
  return places < static_cast<std::size_t>(size.least) ? 0 : places;
}

std::vector<MemberId> choose_members(std::vector<Candidate> candidates, const GenerationSize& size) {
  candidates.resize(places_for(candidates.size(), size));
  std::vector<MemberId> members;
  for (std::size_t first = 0; first < candidates.size(); ++first) {
    const std::string& host = candidates[first].host;
    const auto is_of_host = [&](const Candidate& other) { return other.host == host; };
    // Those of a host were all taken with the first of them.
    if (std::any_of(candidates.begin(), candidates.begin() + first, is_of_host)) continue;
    for (const Candidate& candidate : candidates) {
      if (is_of_host(candidate)) members.push_back(candidate.member);
    }
  }
  return members;
}

}  // namespace lockstep::elastic
