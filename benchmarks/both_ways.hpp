// Bandwidth of both directions at once as OSU's osu_bibw measures it: both ranks start a window of receives
// and a window of sends and wait for all; the bytes of both directions over the time of rank 0, in 10^6 bytes
// a second.
#pragma once

#include "bandwidth.hpp"

namespace bench {

/// Seconds for the timed windows on this rank; filling and checking lie outside.
template <message_ranks Ranks>
double exchange(Ranks& ranks, const options& with, repetitions times, std::uint64_t size, window& out,
                window& in) {
  const auto half = static_cast<std::size_t>(out.messages);
  std::vector<typename Ranks::request> requests(2 * half);
  const int self = ranks.rank(), peer = 1 - self;
  double total = 0;
  clock::time_point start;
  for (int i = 0; i < times.all(); ++i) {
    if (with.check) {
      for (int k = 0; k < out.messages; ++k)
        out.slot(k).fill({.size = size, .iteration = i, .sender = self, .slot = k});
      meet(ranks, peer);
    }
    if (i == times.warmup || with.check) start = clock::now();
    for (std::size_t k = 0; k < half; ++k)
      requests[k] = ranks.irecv(in.slot(static_cast<int>(k)).data(), size, peer, data_label);
    for (std::size_t k = 0; k < half; ++k)
      requests[half + k] = ranks.isend(out.slot(static_cast<int>(k)).data(), size, peer, data_label);
    ranks.wait_all(requests);
    if (!with.check) continue;
    if (i >= times.warmup) total += seconds_since(start);
    for (int k = 0; k < in.messages; ++k)
      if (const auto why = in.slot(k).wrong({.size = size, .iteration = i, .sender = peer, .slot = k}, self))
        ranks.fail(*why);
  }
  return with.check ? total : seconds_since(start);
}

template <message_ranks Ranks>
void measure_both_ways(Ranks& ranks, const options& with) {
  print_bandwidth(ranks, with, [&](std::uint64_t size) {
    window out = make_window(with, size), in = make_window(with, size);
    const repetitions times = repeat(with, size);
    meet(ranks, 1 - ranks.rank());
    const double seconds = exchange(ranks, with, times, size, out, in);
    return traffic{2.0 * times.timed * out.messages, seconds};
  });
}

}  // namespace bench
