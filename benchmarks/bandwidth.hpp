// Bandwidth as OSU's osu_bw measures it: rank 0 starts a window of sends and waits for them, rank 1 receives
// the window and answers with four bytes; all bytes of the timed windows over the time, in 10^6 bytes a
// second.
#pragma once

#include "payload.hpp"
#include "run.hpp"

#include <algorithm>

namespace bench {

inline constexpr std::uint64_t checked_window_bytes = 64u
                                                      << 20;  // each of its messages has memory of its own

/// Buffers of the messages of a window: one that all share, as OSU does, or with -c one for each.
struct window {
  std::vector<payload> buffers;
  int messages;
  payload& slot(int i) { return buffers[static_cast<std::size_t>(i) % buffers.size()]; }
};

inline window make_window(const options& with, std::uint64_t size) {
  window w{{}, with.window};
  if (with.check && size > 0)
    w.messages = static_cast<int>(
        std::clamp<std::uint64_t>(checked_window_bytes / size, 1, static_cast<std::uint64_t>(with.window)));
  const int count = with.check ? w.messages : 1;
  for (int i = 0; i < count; ++i) w.buffers.emplace_back(size);
  return w;
}

/// Seconds for the timed windows, measured on the lower rank of the pair, which sends; filling and checking lie outside.
template <message_ranks Ranks>
double stream(Ranks& ranks, int peer, const options& with, repetitions times, std::uint64_t size, window& w) {
  std::vector<typename Ranks::request> requests(static_cast<std::size_t>(w.messages));
  std::uint32_t answer = 0;
  double total = 0;
  clock::time_point start;
  const int sender = std::min(ranks.rank(), peer);
  const bool sends = ranks.rank() == sender;
  for (int i = 0; i < times.all(); ++i) {
    if (with.check && sends)
      for (int k = 0; k < w.messages; ++k)
        w.slot(k).fill({.size = size, .iteration = i, .sender = sender, .slot = k});
    if (with.check) meet(ranks, peer);
    if (i == times.warmup || with.check) start = clock::now();
    if (sends) {
      for (int k = 0; k < w.messages; ++k)
        requests[static_cast<std::size_t>(k)] = ranks.isend(w.slot(k).data(), size, peer, data_label);
      ranks.wait_all(requests);
      ranks.recv(&answer, sizeof answer, peer, ready_label);
      if (with.check && i >= times.warmup) total += seconds_since(start);
    } else {
      for (int k = 0; k < w.messages; ++k)
        requests[static_cast<std::size_t>(k)] = ranks.irecv(w.slot(k).data(), size, peer, data_label);
      ranks.wait_all(requests);
      ranks.send(&answer, sizeof answer, peer, ready_label);
      if (!with.check) continue;
      for (int k = 0; k < w.messages; ++k)
        if (const auto why =
                w.slot(k).wrong({.size = size, .iteration = i, .sender = sender, .slot = k}, ranks.rank()))
          ranks.fail(*why);
    }
  }
  return with.check ? total : seconds_since(start);
}

/// What `flow` measured of one size.
struct traffic {
  double messages = 0;
  double seconds = 0;
};

/// A row for each size between ranks 0 and 1. `flow(size)` makes its windows, meets the other rank and measures.
template <message_ranks Ranks, class Flow>
void print_bandwidth(Ranks& ranks, const options& with, Flow&& flow) {
  if (ranks.rank() > 1) return wait_for_the_pair(ranks);
  std::optional<report> table;
  if (ranks.rank() == 0) {
    std::vector<column> columns{{"bandwidth_mb_s", "Bandwidth (MB/s)", 2}};
    if (with.full) columns.push_back({"messages_per_s", "Messages/s", 0});
    table.emplace(with, Ranks::library(), ranks.size(), std::move(columns));
  }
  for (const std::uint64_t size : sizes(with)) {
    const traffic moved = flow(size);
    std::vector<double> values{moved.messages * static_cast<double>(size) / moved.seconds * 1e-6};
    if (with.full) values.push_back(moved.messages / moved.seconds);
    if (table) table->row(size, values);
  }
  if (table) table->finish();
  release_the_others(ranks);
}

template <message_ranks Ranks>
void measure_bandwidth(Ranks& ranks, const options& with) {
  print_bandwidth(ranks, with, [&](std::uint64_t size) {
    window w = make_window(with, size);
    const repetitions times = repeat(with, size);
    meet(ranks, 1 - ranks.rank());
    const double seconds = stream(ranks, 1 - ranks.rank(), with, times, size, w);
    return traffic{static_cast<double>(times.timed) * w.messages, seconds};
  });
}

}  // namespace bench
