// What the algorithms over a node's shared scratch have in common: how members tell each other.
#pragma once

#include "collectives/algorithms/builder.hpp"

namespace verbena::collectives {

/// Each looks at each other member's progress word (flags), or all gather at one counter and one release
/// word: with more members than cores that costs much less.
enum class telling { by_flags, by_gathering };

inline void await_others(builder& add, int self, int size, std::uint16_t count) {
  for (int k = 1; k < size; ++k) add.await((self + k) % size, count);
}

/// Everybody's publication of this repetition, or the gathering of all.
inline void tell_all(builder& add, int self, int size, telling how) {
  if (how == telling::by_gathering) {
    add.arrive();
    add.wait_release();
  } else {
    add.publish();
    await_others(add, self, size, 1);
  }
}

/// For repetitions in which a member does not need to hear of everybody: it learns that all have begun the
/// one before (schedule.hpp, node_slots), which costs a look at each, and hardly ever a wait. Last in the
/// list.
inline void learn_of_others(builder& add, int self, int size) {
  await_others(add, self, size, 0);
}

}  // namespace verbena::collectives
