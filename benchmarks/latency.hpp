// One-way latency as OSU's osu_latency measures it: rank 0 sends and waits for rank 1's answer of the same
// size; half the mean round is the latency.
#pragma once

#include "payload.hpp"
#include "run.hpp"

namespace bench {

/// Seconds one way, measured on the lower rank of the pair. Buffers belong to the library during each call and to us in between.
template <message_ranks Ranks>
double ping_pong(Ranks& ranks, int peer, repetitions times, std::uint64_t size, payload& out, payload& in) {
  clock::time_point start;
  if (ranks.rank() < peer) {
    for (int i = 0; i < times.all(); ++i) {
      if (i == times.warmup) start = clock::now();
      ranks.send(out.data(), size, peer, data_label);
      ranks.recv(in.data(), size, peer, data_label);
    }
    return seconds_since(start) / (2.0 * times.timed);
  }
  for (int i = 0; i < times.all(); ++i) {
    ranks.recv(in.data(), size, peer, data_label);
    ranks.send(out.data(), size, peer, data_label);
  }
  return 0;
}

/// The same with a fresh pattern in each message, filled and checked outside the timed part of the lower rank.
template <message_ranks Ranks>
double checked_ping_pong(Ranks& ranks, int peer, repetitions times, std::uint64_t size, payload& out,
                         payload& in) {
  const int self = ranks.rank();
  double total = 0;
  for (int i = 0; i < times.all(); ++i) {
    out.fill({.size = size, .iteration = i, .sender = self});
    meet(ranks, peer);
    const clock::time_point start = clock::now();
    if (self < peer) ranks.send(out.data(), size, peer, data_label);
    ranks.recv(in.data(), size, peer, data_label);
    if (self > peer) ranks.send(out.data(), size, peer, data_label);
    if (i >= times.warmup) total += seconds_since(start);
    if (const auto why = in.wrong({.size = size, .iteration = i, .sender = peer}, self)) ranks.fail(*why);
  }
  return total / (2.0 * times.timed);
}

template <message_ranks Ranks>
void measure_latency(Ranks& ranks, const options& with) {
  if (ranks.rank() > 1) return wait_for_the_pair(ranks);
  std::optional<report> table;
  if (ranks.rank() == 0) {
    std::vector<column> columns{{"latency_us", "Latency (us)", 3}};
    if (with.full) columns.push_back({"iterations", "Iterations", 0});
    table.emplace(with, Ranks::library(), ranks.size(), std::move(columns));
  }
  payload out(with.max_size), in(with.max_size);
  for (const std::uint64_t size : sizes(with)) {
    const repetitions times = repeat(with, size);
    const int peer = 1 - ranks.rank();
    meet(ranks, peer);
    const double seconds = with.check ? checked_ping_pong(ranks, peer, times, size, out, in)
                                      : ping_pong(ranks, peer, times, size, out, in);
    std::vector<double> values{seconds * 1e6};
    if (with.full) values.push_back(times.timed);
    if (table) table->row(size, values);
  }
  if (table) table->finish();
  release_the_others(ranks);
}

}  // namespace bench
