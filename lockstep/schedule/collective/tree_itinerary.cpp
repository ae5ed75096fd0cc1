// SPDX-License-Identifier: Apache-2.0
//
// all_to_all along two trees: a parcel goes up to where its destination is below, and down to it. The parcels
// of a rank take the tree in which it has children, where ways are shorter; both trees carry about half. What
// passes an edge in one direction is one message.
#include <utility>

#include "lockstep/schedule/collective/itinerary.h"
#include "lockstep/schedule/collective/two_trees.h"

namespace lockstep::schedule {
namespace {

class TreeTravel {
 public:
  TreeTravel(Rank rank, int world) : rank_(rank), world_(world), trees_(world) {
    for (Rank origin = 0; origin < world; ++origin) tree_of_.push_back(trees_.tree_of_children(origin));
  }

  // Up: take from the children, then give to the parent. Down: take from the parent, then give to the
  // children. What a rank gets as a leaf comes last, because nobody waits for what it does with it.
  Itinerary itinerary() const {
    Itinerary stages(4);
    for (int tree : {0, 1}) {
      const TreeNode node = trees_.node_of(rank_, tree);
      const std::vector<Rank> children = node.children();
      for (Rank child : children) {
        add(stages[0].receives, child, upward(child, tree));
        add(stages[3].sends, child, downward(child, tree));
      }
      if (!node.parent) continue;
      add(stages[children.empty() ? 0 : 1].sends, *node.parent, upward(rank_, tree));
      add(stages[children.empty() ? 3 : 2].receives, *node.parent, downward(rank_, tree));
    }
    return stages;
  }

 private:
  // Over the edge above `top`: what comes from its subtree and goes elsewhere.
  std::vector<Parcel> upward(Rank top, int tree) const {
    std::vector<Parcel> parcels;
    const std::vector<bool> below = marked(trees_.subtree_of(top, tree));
    for (Rank origin = 0; origin < world_; ++origin) {
      if (!below[origin] || tree_of_[origin] != tree) continue;
      for (Rank destination = 0; destination < world_; ++destination) {
        if (!below[destination]) parcels.push_back({origin, destination});
      }
    }
    return parcels;
  }

  // What comes from elsewhere and goes to its subtree, in the order in which it is divided there.
  std::vector<Parcel> downward(Rank top, int tree) const {
    std::vector<Parcel> parcels;
    const std::vector<Rank> subtree = trees_.subtree_of(top, tree);
    const std::vector<bool> below = marked(subtree);
    for (Rank destination : subtree) {
      for (Rank origin = 0; origin < world_; ++origin) {
        if (!below[origin] && tree_of_[origin] == tree) parcels.push_back({origin, destination});
      }
    }
    return parcels;
  }

  std::vector<bool> marked(const std::vector<Rank>& ranks) const {
    std::vector<bool> marks(world_, false);
    for (Rank rank : ranks) marks[rank] = true;
    return marks;
  }

  Rank rank_;
  int world_;
  TwoTrees trees_;
  std::vector<int> tree_of_;  // that the parcels of a rank take
};

}  // namespace

Itinerary tree_itinerary(Rank rank, int world) {
  return TreeTravel(rank, world).itinerary();
}

}  // namespace lockstep::schedule
