// Barriers in the node block; no messages. Exchange: each publishes and looks at everybody else, n - 1 reads,
// no locked instruction. Gathering: a counter and a release word that all sleepers share, for more ranks than
// cores (64 ranks on 2 cores: 314 us, against 1702 by dissemination).
#include "collectives/algorithms/algorithms.hpp"
#include "collectives/algorithms/builder.hpp"

namespace verbena::collectives {

schedule barrier_node_exchange(int self, int size, const shape&) {
  schedule result;
  if (size == 1) return result;
  result.on_node = true;
  builder add(result);
  add.publish();
  for (int k = 1; k < size; ++k) add.await((self + k) % size, 1);
  return result;
}

schedule barrier_node_gathering(int, int size, const shape&) {
  schedule result;
  if (size == 1) return result;
  result.on_node = true;
  builder add(result);
  add.arrive();
  add.wait_release();
  return result;
}

}  // namespace verbena::collectives
