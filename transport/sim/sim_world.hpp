// N endpoints in one thread, virtual time, one seed. The world carries what sim_fabrics post, with delay,
// jitter, refusals and deaths, and does one thing at a time: `step` advances to the next event. Whoever
// drives it polls the endpoints named by `take_woken` until none is named, then steps; a step that returns
// false with programs unfinished is a deadlock, for nothing is left that could change anything.
//
// One-sided operations read and write user memory at the latest moment a real network might: a put reads its
// source when it arrives, a get writes its target when its answer arrives. So a buffer that is given up too
// early shows as wrong bytes or as a report of the address sanitizer.
//
// The world knows endpoints and bytes, never what is in them. It outlives its fabrics and their regions.
#pragma once

#include "transport/fabric.hpp"
#include "transport/key_table.hpp"
#include "transport/sim/options.hpp"
#include "transport/sim/parcel.hpp"
#include "transport/sim/random.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace verbena::transport::sim {

class sim_fabric;

inline constexpr std::uint32_t any_peer = UINT32_MAX;

class sim_world {
 public:
  explicit sim_world(const world_options& options);
  sim_world(const sim_world&) = delete;
  sim_world& operator=(const sim_world&) = delete;

  base::nanoseconds now() const noexcept { return now_; }
  std::uint32_t size() const noexcept { return options_.size; }
  const world_options& options() const noexcept { return options_; }
  const counters& counted() const noexcept { return counted_; }
  random_source& chance() noexcept { return random_; }

  /// Advances to the next event and lets it happen. False: none is left.
  bool step();

  /// Endpoints that have something to poll, or may post again what was refused, since the last call; each
  /// once, in the order in which it came to be. The span is valid until the next call.
  std::span<const std::uint32_t> take_woken();

  /// A process dies, between two events. What it had under way is lost from some point on: packets behind
  /// that point vanish, a put at that point is torn. Everybody alive hears of it in a while. The driver polls
  /// a dead endpoint no more; its memory may go.
  void kill(peer who);
  /// The same at a moment to come.
  void kill_at(peer who, base::nanoseconds time);
  bool alive(peer who) const noexcept { return endpoints_[who.index].alive; }

  /// Parcels not yet delivered or given up; 0 at the end of a run in good order.
  std::uint32_t under_way() const noexcept { return pool_.in_use(); }

 private:
  friend class sim_fabric;

  struct endpoint {
    key_table keys;
    std::uint32_t inbox_first = no_parcel;
    std::uint32_t inbox_last = no_parcel;
    bool attached = false;  ///< a sim_fabric stands for it
    bool alive = true;
    bool woken = false;
    bool nudged = false;
    std::vector<std::uint32_t> down;  ///< peers whose death was reported here
  };
  /// One direction of one pair; made by the first post.
  struct link {
    base::nanoseconds free_at = 0;       ///< when the last bytes have left
    base::nanoseconds last_arrival = 0;  ///< nothing arrives before what was posted earlier
    std::uint32_t under_way = 0;
    bool refused = false;  ///< the sender waits for room
  };

  // For sim_fabric (post.cpp): what it posts ...
  post_result admit(std::uint32_t from, std::uint32_t to);
  /// Sends a parcel on its way; it arrives when `bytes` have passed and nothing earlier is left before it.
  std::uint32_t dispatch(std::uint32_t from, std::uint32_t to, parcel_kind what, std::size_t bytes);
  struct request {
    parcel_kind what;
    std::uint32_t from, to;
    buffer local;
    remote_key key;
    std::uint64_t offset = 0;
    std::uint64_t words[2] = {};
  };
  post_result post_one_sided(const request& asked, operation& op);
  post_result offer(std::uint32_t from, std::uint32_t to, buffer local, remote_key& ticket, operation& op);
  post_result accept(std::uint32_t from, std::uint32_t to, buffer local, const remote_key& ticket,
                     operation& op);
  bool withdraw(std::uint32_t from, std::uint32_t to, const remote_key& ticket);
  table_region register_memory(std::uint32_t owner, buffer local);
  void attach(std::uint32_t index);
  void detach(std::uint32_t index);

  // ... and what it polls.
  std::uint32_t poll_budget() noexcept;
  /// Takes the oldest parcel out of an inbox: `about` one peer, or (any_peer) whichever; no_parcel if none.
  std::uint32_t take_from_inbox(std::uint32_t owner, std::uint32_t about) noexcept;
  void end_poll(std::uint32_t owner);
  /// Gives a parcel up, wherever it is; its operation, if any, is forgotten.
  void release(std::uint32_t index);
  /// The news has arrived: what `owner` has pending at the dead ends, and from now on its posts are refused.
  void fail_pending(std::uint32_t owner, std::uint32_t dead);

  // Events (sim_world.cpp).
  void arrive(std::uint32_t index);
  void carry_out(std::uint32_t index);
  void carry_out_shared(std::uint32_t index);
  void answer(std::uint32_t index, errc error);
  void bring_back(parcel& p) noexcept;
  /// Does to the target's memory what the parcel asks; `most` bytes of a put at most.
  errc apply(parcel& p, std::size_t most) noexcept;
  void schedule(std::uint32_t index, base::nanoseconds time);
  void to_inbox(std::uint32_t owner, std::uint32_t index);
  void wake(std::uint32_t index);
  base::nanoseconds delay();
  base::nanoseconds passing(std::size_t bytes) const noexcept;
  link& link_of(std::uint32_t from, std::uint32_t to) { return links_[(std::uint64_t{from} << 32) | to]; }
  std::uint32_t find_offer(std::uint32_t from, std::uint32_t to, const remote_key& ticket) noexcept;
  bool reachable(std::uint32_t index) const noexcept {
    return endpoints_[index].alive && endpoints_[index].attached;
  }

  // Death (death.cpp).
  void lose_what_it_sent(std::uint32_t dead);
  void strand_answers_of(std::uint32_t dead);
  void spread_the_news(std::uint32_t dead);
  template <class Choose>
  std::vector<std::uint32_t> in_order_of_posting(Choose&& choose);

  world_options options_;
  random_source random_;
  counters counted_;
  base::nanoseconds now_ = 0;
  std::uint64_t serial_ = 0;
  parcel_pool pool_;
  agenda agenda_;
  std::vector<endpoint> endpoints_;
  std::unordered_map<std::uint64_t, link> links_;  // looked up only, never walked: its order is not ours
  std::vector<std::uint32_t> woken_;
  std::vector<std::uint32_t> handed_out_;
};

}  // namespace verbena::transport::sim
