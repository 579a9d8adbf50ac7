// All-reduce latency as OSU's osu_allreduce measures it: each call is timed alone, with a barrier between
// calls; the mean of each rank, then the mean, least and most over the ranks.
#pragma once

#include "payload.hpp"
#include "run.hpp"
#include "spread.hpp"

namespace bench {

/// Mean seconds of a call on this rank.
template <message_ranks Ranks>
double timed_allreduce(Ranks& ranks, const options& with, repetitions times, std::uint64_t size, payload& in,
                       payload& out) {
  const std::size_t count = in.floats(size).size();
  double total = 0;
  for (int i = 0; i < times.all(); ++i) {
    if (with.check) {
      in.fill_summands(size, i, ranks.rank());
      out.fill({.size = size, .iteration = i, .sender = ranks.rank()});  // so that stale sums are seen
    }
    const clock::time_point start = clock::now();
    ranks.allreduce(in.floats(size).data(), out.floats(size).data(), count);
    if (i >= times.warmup) total += seconds_since(start);
    if (with.check)
      if (const auto why = out.wrong_sum(size, i, ranks.rank(), ranks.size())) ranks.fail(*why);
    ranks.barrier();
  }
  return total / times.timed;
}

template <message_ranks Ranks>
void measure_allreduce(Ranks& ranks, const options& with) {
  std::optional<report> table;
  if (ranks.rank() == 0) {
    std::vector<column> columns{{"avg_us", "Avg Latency(us)", 3}};
    if (with.full)
      columns.insert(columns.end(), {{"min_us", "Min Latency(us)", 3},
                                     {"max_us", "Max Latency(us)", 3},
                                     {"iterations", "Iterations", 0}});
    table.emplace(with, Ranks::library(), ranks.size(), std::move(columns));
  }
  payload in(with.max_size), out(with.max_size);
  in.fill_summands(with.max_size, 0, ranks.rank());
  for (const std::uint64_t size : sizes(with)) {
    const repetitions times = repeat(with, size);
    ranks.barrier();
    const spread all = over_ranks(ranks, timed_allreduce(ranks, with, times, size, in, out));
    std::vector<double> values{all.mean * 1e6};
    if (with.full) values.insert(values.end(), {all.least * 1e6, all.most * 1e6, 1.0 * times.timed});
    if (table) table->row(size, values);
  }
  if (table) table->finish();
}

}  // namespace bench
