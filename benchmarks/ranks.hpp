// What the measuring loops need of a message-passing library. The loops are templates over it, so Verbena and
// the peers run the same code and differ in nothing but the calls below it.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>

namespace bench {

template <class Ranks>
concept message_ranks = requires(Ranks ranks, const void* out, void* in, std::size_t bytes, int peer,
                                 int label, std::span<typename Ranks::request> all, const float* summands,
                                 float* sums, const std::string& text) {
  { ranks.rank() } -> std::same_as<int>;
  { ranks.size() } -> std::same_as<int>;
  ranks.send(out, bytes, peer, label);
  ranks.recv(in, bytes, peer, label);
  { ranks.isend(out, bytes, peer, label) } -> std::same_as<typename Ranks::request>;
  { ranks.irecv(in, bytes, peer, label) } -> std::same_as<typename Ranks::request>;
  ranks.wait_all(all);
  ranks.barrier();
  ranks.allreduce(summands, sums, bytes);  // `bytes` floats are summed
  ranks.broadcast(in, bytes);              // these from or to rank 0, `bytes` of each rank
  ranks.reduce(summands, sums, bytes);     // `bytes` floats
  ranks.gather(out, in, bytes);
  ranks.scatter(out, in, bytes);
  ranks.allgather(out, in, bytes);
  ranks.alltoall(out, in, bytes);
  ranks.fail(text);  // prints, ends the whole job with status 1, does not return
  { Ranks::library() } -> std::same_as<std::string>;
};

using clock =
    std::chrono::steady_clock;  // one clock for all libraries: its cost is part of an all-reduce's time

inline double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

inline constexpr int data_label = 1;
inline constexpr int ready_label = 2;
inline constexpr int end_label = 3;

/// Both ranks of a pair have come here. Other ranks are not needed, so they can sleep meanwhile.
template <message_ranks Ranks>
void meet(Ranks& ranks, int peer) {
  if (ranks.rank() < peer) {
    ranks.send(nullptr, 0, peer, ready_label);
    ranks.recv(nullptr, 0, peer, ready_label);
  } else {
    ranks.recv(nullptr, 0, peer, ready_label);
    ranks.send(nullptr, 0, peer, ready_label);
  }
}

}  // namespace bench
