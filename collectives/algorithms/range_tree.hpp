// The tree of the rooted algorithms: the ranks 0 .. n-1 are halved again and again; each range has a leader,
// which is the root if it is in the range, else the lowest. So every subtree is a range of neighbours,
// whatever the root: blocks of a subtree lie together, and operands combined along the tree keep their rank
// order. ceil(log2 n) levels, as a binomial tree has.
#pragma once

#include <vector>

namespace verbena::collectives {

struct subtree {
  int leader = 0;
  int first = 0, last = 0;  ///< its ranks: [first, last)
};

/// A rank's place: the range it leads, above it its parent (-1: the root has none), below it the leaders of
/// the ranges that were split off, the largest first.
struct tree_place {
  int parent = -1;
  subtree own;
  std::vector<subtree> children;
};

inline tree_place place_in_tree(int self, int size, int root) {
  const auto leader_of = [&](int first, int last) { return root >= first && root < last ? root : first; };
  tree_place result;
  int first = 0, last = size;
  if (leader_of(first, last) == self) result.own = {self, first, last};
  while (last - first > 1) {
    const int middle = first + (last - first + 1) / 2;
    const subtree low{leader_of(first, middle), first, middle};
    const subtree high{leader_of(middle, last), middle, last};
    const int leader = leader_of(first, last);
    const subtree& mine = self < middle ? low : high;
    const subtree& other = self < middle ? high : low;
    if (leader == self) {
      result.children.push_back(other);
    } else if (mine.leader == self && leader != mine.leader) {
      result.parent = leader;
      result.own = mine;
    }
    first = mine.first;
    last = mine.last;
  }
  return result;
}

}  // namespace verbena::collectives
