// What all ranks measured, brought together at rank 0.
#pragma once

#include "ranks.hpp"

#include <algorithm>

namespace bench {

struct spread {
  double mean = 0, least = 0, most = 0;
};

/// The means of all ranks, gathered at rank 0 by plain messages.
template <message_ranks Ranks>
spread over_ranks(Ranks& ranks, double mine) {
  if (ranks.rank() != 0) {
    ranks.send(&mine, sizeof mine, 0, data_label);
    return {};
  }
  spread all{mine, mine, mine};
  for (int other = 1; other < ranks.size(); ++other) {
    double theirs = 0;
    ranks.recv(&theirs, sizeof theirs, other, data_label);
    all.mean += theirs;
    all.least = std::min(all.least, theirs);
    all.most = std::max(all.most, theirs);
  }
  all.mean /= ranks.size();
  return all;
}

}  // namespace bench
