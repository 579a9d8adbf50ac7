// Puts and gets as OSU's osu_put_latency, osu_get_latency, osu_put_bw and osu_get_bw measure them, with the
// memory that the library allocates for it and a flush after each access, or after each window of accesses:
// rank 0 reads and writes memory of rank 1, which waits in a barrier meanwhile.
#pragma once

#include "bandwidth.hpp"

#include <cstring>

namespace bench {

/// What the loops below need besides messages. A window is memory of every rank that the others reach.
template <class Ranks>
concept one_sided_ranks = message_ranks<Ranks> &&
    requires(Ranks ranks, typename Ranks::exposed& memory, void* data, std::size_t bytes, int peer) {
  {
    ranks.expose(bytes)
    } -> std::same_as<typename Ranks::exposed>;  // all ranks together; now it may be accessed
  { memory.data() } -> std::same_as<std::byte*>;
  ranks.conceal(memory);                                  // all ranks together
  ranks.put_and_flush(memory, data, bytes, peer, bytes);  // the last: offset in the memory of `peer`
  ranks.get_and_flush(memory, data, bytes, peer, bytes);
  ranks.start_put(memory, data, bytes, peer, bytes);
  ranks.start_get(memory, data, bytes, peer, bytes);
  ranks.finish_puts(memory, peer);  // all started: there
  ranks.finish_gets(memory, peer);  // all started: here
  ranks.sync(memory);               // between plain accesses to the own memory and those of others
};

template <one_sided_ranks Ranks>
class one_sided_bench {
 public:
  one_sided_bench(Ranks& ranks, const options& with)
      : ranks_(ranks),
        with_(with),
        puts_(with.what == kind::put_latency || with.what == kind::put_bandwidth),
        single_(with.what == kind::put_latency || with.what == kind::get_latency) {}

  /// Seconds of the timed accesses, or windows of them, on rank 0.
  double timed(std::uint64_t size, repetitions times) {
    size_ = size;
    window local = single_ ? window{{}, 1} : make_window(with_, size);
    if (single_) local.buffers.emplace_back(size);
    messages_ = local.messages;
    // Where the memory of a whole window would be too much its accesses share it.
    places_ = size == 0 ? 1
                        : static_cast<int>(std::clamp<std::uint64_t>(checked_window_bytes / size, 1,
                                                                     static_cast<std::uint64_t>(messages_)));
    typename Ranks::exposed memory = ranks_.expose(static_cast<std::size_t>(places_) * size + guard);
    double total = 0;
    if (with_.check)
      for (int i = 0; i < times.all(); ++i) {
        const double once = checked(memory, local, i);
        if (i >= times.warmup) total += once;
      }
    else if (ranks_.rank() == 0)
      total = plain(memory, local, times);
    ranks_.barrier();
    ranks_.conceal(memory);
    return total;
  }
  int messages() const { return messages_; }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte untouched{0xa5};

  std::size_t place(int k) const {
    return static_cast<std::size_t>(k % places_) * static_cast<std::size_t>(size_);
  }
  message moved(int i, int k) const {
    return {.size = size_, .iteration = i, .sender = puts_ ? 0 : 1, .slot = k};
  }

  void access(typename Ranks::exposed& memory, window& local) {
    const auto bytes = static_cast<std::size_t>(size_);
    if (single_ && puts_) return ranks_.put_and_flush(memory, local.slot(0).data(), bytes, 1, 0);
    if (single_) return ranks_.get_and_flush(memory, local.slot(0).data(), bytes, 1, 0);
    if (puts_) {
      for (int k = 0; k < messages_; ++k) ranks_.start_put(memory, local.slot(k).data(), bytes, 1, place(k));
      return ranks_.finish_puts(memory, 1);
    }
    for (int k = 0; k < messages_; ++k) ranks_.start_get(memory, local.slot(k).data(), bytes, 1, place(k));
    ranks_.finish_gets(memory, 1);
  }

  double plain(typename Ranks::exposed& memory, window& local, repetitions times) {
    clock::time_point start;
    for (int i = 0; i < times.all(); ++i) {
      if (i == times.warmup) start = clock::now();
      access(memory, local);
    }
    return seconds_since(start);
  }

  /// One repetition of which every byte is checked: at rank 1 what was put, at rank 0 what it got.
  double checked(typename Ranks::exposed& memory, window& local, int i) {
    const int self = ranks_.rank();
    const std::size_t all = static_cast<std::size_t>(places_) * static_cast<std::size_t>(size_);
    if (self == 0)
      for (int k = 0; k < messages_; ++k)
        local.slot(k).fill(moved(puts_ ? i : ~i, k));  // gets: something else
    if (self == 1) {
      payload wanted(size_);
      std::memset(memory.data(), std::to_integer<int>(untouched), all + guard);
      for (int k = 0; k < messages_ && !puts_; ++k) {
        wanted.fill(moved(i, k));
        std::memcpy(memory.data() + place(k), wanted.data(), static_cast<std::size_t>(size_));
      }
    }
    ranks_.sync(memory);
    ranks_.barrier();
    double seconds = 0;
    if (self == 0) {
      const clock::time_point start = clock::now();
      access(memory, local);
      seconds = seconds_since(start);
    }
    ranks_.barrier();
    ranks_.sync(memory);
    if (self == (puts_ ? 1 : 0))
      for (int k = 0; k < messages_; ++k) {
        if (puts_)
          std::memcpy(local.slot(k).data(), memory.data() + place(k), static_cast<std::size_t>(size_));
        const auto why =
            puts_ ? local.slot(k).wrong_at(0, moved(i, k), self) : local.slot(k).wrong(moved(i, k), self);
        if (why) ranks_.fail(*why);
      }
    if (self == 1)
      for (std::size_t at = all; at < all + guard; ++at)
        if (memory.data()[at] != untouched)
          ranks_.fail(fmt::format(
              "rank 1: size {}: byte at offset {} is 0x{:02x}, must be 0x{:02x} (behind the end "
              "of the memory accessed)",
              size_, at, std::to_integer<int>(memory.data()[at]), std::to_integer<int>(untouched)));
    ranks_.barrier();
    return seconds;
  }

  Ranks& ranks_;
  const options& with_;
  const bool puts_, single_;
  std::uint64_t size_ = 0;
  int messages_ = 1, places_ = 1;
};

template <one_sided_ranks Ranks>
void measure_one_sided(Ranks& ranks, const options& with) {
  const bool latency = with.what == kind::put_latency || with.what == kind::get_latency;
  std::optional<report> table;
  if (ranks.rank() == 0) {
    std::vector<column> columns{latency ? column{"latency_us", "Latency (us)", 3}
                                        : column{"bandwidth_mb_s", "Bandwidth (MB/s)", 2}};
    if (with.full)
      columns.push_back(latency ? column{"iterations", "Iterations", 0}
                                : column{"messages_per_s", "Messages/s", 0});
    table.emplace(with, Ranks::library(), ranks.size(), std::move(columns));
  }
  one_sided_bench<Ranks> one(ranks, with);
  for (const std::uint64_t size : sizes(with)) {
    const repetitions times = repeat(with, size);
    const double seconds = one.timed(size, times);
    const double accesses = static_cast<double>(times.timed) * one.messages();
    std::vector<double> values{latency ? seconds / times.timed * 1e6
                                       : accesses * static_cast<double>(size) / seconds * 1e-6};
    if (with.full) values.push_back(latency ? times.timed : accesses / seconds);
    if (table) table->row(size, values);
  }
  if (table) table->finish();
}

}  // namespace bench
