// Latency of a collective as OSU's osu_bcast, osu_gather, ... measure it: each call is timed alone, with a
// barrier between calls; the mean of each rank, then the mean, least and most over the ranks. The size shown
// is that of the vector (broadcast, reduce) or of one rank's block (the others). The root is rank 0.
#pragma once

#include "allreduce.hpp"

#include <cstring>
#include <type_traits>

namespace bench {

/// What one collective is to the loop below: which buffers of how many blocks it needs, the call, what to
/// fill before and what to expect after.
struct collective_shape {
  kind what;
  bool input_blocks = false;   ///< a block for each rank
  bool output_blocks = false;  ///< a block of each rank
};

constexpr collective_shape shape_of(kind what) {
  switch (what) {
    case kind::gather:
    case kind::allgather:
      return {what, false, true};
    case kind::scatter:
      return {what, true, false};
    case kind::alltoall:
      return {what, true, true};
    default:
      return {what};
  }
}

template <message_ranks Ranks>
class collective_bench {
 public:
  collective_bench(Ranks& ranks, const options& with)
      : ranks_(ranks),
        with_(with),
        shape_(shape_of(with.what)),
        in_(with.max_size * (shape_.input_blocks ? blocks() : 1)),
        out_(with.max_size * (shape_.output_blocks ? blocks() : 1)) {
    if (with.what == kind::reduce) in_.fill_summands(with.max_size, 0, ranks.rank());
  }

  /// Mean seconds of a call on this rank.
  double timed(std::uint64_t size, repetitions times) {
    double total = 0;
    for (int i = 0; i < times.all(); ++i) {
      if (with_.check) fill(size, i);
      const clock::time_point start = clock::now();
      call(size);
      if (i >= times.warmup) total += seconds_since(start);
      if (with_.check) verify(size, i);
      ranks_.barrier();
    }
    return total / times.timed;
  }

 private:
  std::uint64_t blocks() const { return static_cast<std::uint64_t>(ranks_.size()); }
  bool root() const { return ranks_.rank() == 0; }

  void call(std::uint64_t size) {
    switch (with_.what) {
      case kind::barrier:
        return ranks_.barrier();
      case kind::broadcast:
        return ranks_.broadcast(out_.data(), size);
      case kind::reduce:
        return ranks_.reduce(in_.floats(size).data(), out_.floats(size).data(), size / sizeof(float));
      case kind::gather:
        return ranks_.gather(in_.data(), out_.data(), size);
      case kind::scatter:
        return ranks_.scatter(in_.data(), out_.data(), size);
      case kind::allgather:
        return ranks_.allgather(in_.data(), out_.data(), size);
      default:
        return ranks_.alltoall(in_.data(), out_.data(), size);
    }
  }

  /// The bytes that go from one rank to another: `slot` is the receiver.
  static message moved(std::uint64_t size, int i, int from, int to) {
    return {.size = size, .iteration = i, .sender = from, .slot = to};
  }

  void fill(std::uint64_t size, int i) {
    const int self = ranks_.rank();
    const std::uint64_t outputs = shape_.output_blocks ? blocks() : 1;
    out_.fill({.size = size * outputs, .iteration = ~i, .sender = self});  // so that what is stale is seen
    if (with_.what == kind::reduce) return in_.fill_summands(size, i, self);
    if (with_.what == kind::broadcast && root()) return out_.fill(moved(size, i, 0, 0));
    if (!shape_.input_blocks) return in_.fill(moved(size, i, self, 0));
    for (int to = 0; to < ranks_.size(); ++to)
      in_.fill_at(static_cast<std::uint64_t>(to) * size, moved(size, i, self, to));
  }

  void verify(std::uint64_t size, int i) {
    const int self = ranks_.rank();
    const auto demand = [&](const std::optional<std::string>& why) {
      if (why) ranks_.fail(*why);
    };
    switch (with_.what) {
      case kind::barrier:
        return;
      case kind::broadcast:
        return demand(out_.wrong(moved(size, i, 0, 0), self));
      case kind::scatter:
        return demand(out_.wrong(moved(size, i, 0, self), self));
      case kind::reduce:
        if (root()) demand(out_.wrong_sum(size, i, self, ranks_.size()));
        return;
      case kind::gather:
        if (!root()) return;
        break;
      default:
        break;
    }
    for (int from = 0; from < ranks_.size(); ++from)
      demand(out_.wrong_at(static_cast<std::uint64_t>(from) * size,
                           moved(size, i, from, with_.what == kind::alltoall ? self : 0), self));
    demand(out_.wrong_guard(blocks() * size, self));
  }

  Ranks& ranks_;
  const options& with_;
  const collective_shape shape_;
  payload in_, out_;
};

template <message_ranks Ranks>
void measure_collective(Ranks& ranks, const options& with) {
  std::optional<report> table;
  if (ranks.rank() == 0) {
    std::vector<column> columns{{"avg_us", "Avg Latency(us)", 3}};
    if (with.full)
      columns.insert(columns.end(), {{"min_us", "Min Latency(us)", 3},
                                     {"max_us", "Max Latency(us)", 3},
                                     {"iterations", "Iterations", 0}});
    table.emplace(with, Ranks::library(), ranks.size(), std::move(columns));
  }
  collective_bench<Ranks> one(ranks, with);
  for (const std::uint64_t size : sizes(with)) {
    const repetitions times = repeat(with, size);
    ranks.barrier();
    const spread all = over_ranks(ranks, one.timed(size, times));
    std::vector<double> values{all.mean * 1e6};
    if (with.full) values.insert(values.end(), {all.least * 1e6, all.most * 1e6, 1.0 * times.timed});
    if (table) table->row(size, values);
  }
  if (table) table->finish();
}

}  // namespace bench
