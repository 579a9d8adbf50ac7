// All pairs at once, as OSU's osu_mbw_mr and osu_multi_lat measure them: rank r and rank r + n/2 are a pair.
// The loops are those of one pair; all begin behind a barrier, and the time is the mean over the pairs. Of an
// odd number of ranks the last one has no partner and only meets the others.
#pragma once

#include "bandwidth.hpp"
#include "latency.hpp"
#include "spread.hpp"

#include <optional>

namespace bench {

template <message_ranks Ranks>
std::optional<int> partner_of(const Ranks& ranks) {
  const int pairs = ranks.size() / 2, self = ranks.rank();
  if (self < pairs) return self + pairs;
  if (self < 2 * pairs) return self - pairs;
  return std::nullopt;
}

/// Mean over the pairs, at rank 0, of what the lower rank of each has measured.
template <message_ranks Ranks>
double over_pairs(Ranks& ranks, double mine) {
  const bool measured = ranks.rank() < ranks.size() / 2;
  return over_ranks(ranks, measured ? mine : 0).mean * ranks.size() / (ranks.size() / 2);
}

template <message_ranks Ranks>
void measure_pairs_bandwidth(Ranks& ranks, const options& with) {
  std::optional<report> table;
  if (ranks.rank() == 0)
    table.emplace(
        with, Ranks::library(), ranks.size(),
        std::vector<column>{{"bandwidth_mb_s", "Bandwidth (MB/s)", 2}, {"messages_per_s", "Messages/s", 0}});
  const std::optional<int> partner = partner_of(ranks);
  for (const std::uint64_t size : sizes(with)) {
    const repetitions times = repeat(with, size);
    window w = make_window(with, size);
    ranks.barrier();
    const double mine = partner ? stream(ranks, *partner, with, times, size, w) : 0;
    const double seconds = over_pairs(ranks, mine);
    const double messages = static_cast<double>(times.timed) * w.messages * (ranks.size() / 2);
    if (table) table->row(size, {messages * static_cast<double>(size) / seconds * 1e-6, messages / seconds});
  }
  if (table) table->finish();
}

template <message_ranks Ranks>
void measure_pairs_latency(Ranks& ranks, const options& with) {
  std::optional<report> table;
  if (ranks.rank() == 0) {
    std::vector<column> columns{{"latency_us", "Latency (us)", 3}};
    if (with.full) columns.push_back({"iterations", "Iterations", 0});
    table.emplace(with, Ranks::library(), ranks.size(), std::move(columns));
  }
  const std::optional<int> partner = partner_of(ranks);
  payload out(with.max_size), in(with.max_size);
  for (const std::uint64_t size : sizes(with)) {
    const repetitions times = repeat(with, size);
    ranks.barrier();
    double mine = 0;
    if (partner)
      mine = with.check ? checked_ping_pong(ranks, *partner, times, size, out, in)
                        : ping_pong(ranks, *partner, times, size, out, in);
    std::vector<double> values{over_pairs(ranks, mine) * 1e6};
    if (with.full) values.push_back(times.timed);
    if (table) table->row(size, values);
  }
  if (table) table->finish();
}

}  // namespace bench
