// N endpoints in one thread, virtual time, one seed. The world carries what sim_fabrics post, with delay,
// jitter, refusals and deaths, and does one thing at a time: `step` advances to the next event. Whoever
// drives it polls the endpoints named by `take_woken` until none is named, then steps; a step that returns
// false with programs unfinished is a deadlock, for nothing is left that could change anything.
//
// One-sided operations read and write user memory at the latest moment a real network might: a put reads its
// source when it arrives, a get writes its target when its answer arrives. So a buffer that is given up too
// early shows as wrong bytes or as a report of the address sanitizer.
//
// Where links lose, double or reorder packets, or break for a time, a session lies between each two endpoints
// that have to do with each other. It works where a network card would: between events, whether anybody polls
// or not; an inbox holds only what its session has accepted.
//
// The world knows endpoints and bytes, never what is in them. It outlives its fabrics and their regions.
#pragma once

#include "transport/fabric.hpp"
#include "transport/key_table.hpp"
#include "transport/session/session.hpp"
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

  /// Nothing passes between the endpoints that `what` covers from now (its `from` is not looked at) until its
  /// end; then their sessions resume. Only in a world with sessions.
  void break_links(const outage& what);

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
    base::nanoseconds last_arrival = 0;  ///< nothing arrives before what was posted earlier ...
    base::nanoseconds latest = 0;        ///< ... but what the link holds up may arrive as late as this
    std::uint32_t under_way = 0;
    bool refused = false;  ///< the sender waits for room
  };

  /// What one endpoint has in the way of a session with another; made by the first packet.
  struct side {
    explicit side(const session::session_options& options) : talk(options) {}
    session::session talk;
    base::nanoseconds looks_at = base::never;  ///< the earliest timer under way
    std::vector<std::uint32_t> flags;          ///< arrived, and packets sent before them have not
    std::vector<std::uint32_t> late;           ///< packets of the broken connection that come after the next
    bool severed = false;                      ///< given up; nothing more is heard
  };

  // For sim_fabric (post.cpp): what it posts ...
  post_result admit(std::uint32_t from, std::uint32_t to);
  /// Sends a parcel on its way; it arrives when `bytes` have passed and nothing earlier is left before it.
  std::uint32_t dispatch(std::uint32_t from, std::uint32_t to, parcel_kind what, std::size_t bytes);
  void launch(std::uint32_t index, std::size_t bytes);
  /// A packet of `size` bytes to be filled in, and then to be sent.
  std::uint32_t begin_packet(std::uint32_t from, std::uint32_t to, std::size_t size);
  void end_packet(std::uint32_t index);
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
  void fail_pending(std::uint32_t owner, std::uint32_t dead, errc why);

  // Events (sim_world.cpp).
  void arrive(std::uint32_t index);
  void carry_out(std::uint32_t index);
  void carry_out_shared(std::uint32_t index);
  void tell_flag(const parcel& put);
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

  // Sessions (links.cpp): packets over links that lose, and what is done about it.
  side& side_of(std::uint32_t owner, std::uint32_t other);
  side* find_side(std::uint32_t owner, std::uint32_t other) noexcept;
  /// A copy of a retained packet, or (null) an answer, goes over the link; it may be lost, doubled, held up.
  void cross_link(std::uint32_t from, std::uint32_t to, session_header head, const parcel* kept);
  void hear(std::uint32_t index);
  void deliver(std::uint32_t index);
  void deliver_flag(std::uint32_t index);
  void look_at_clock(std::uint32_t index);
  /// After anything that may have changed what a session has to do.
  void attend(std::uint32_t owner, std::uint32_t other);
  bool send_again(std::uint32_t owner, std::uint32_t other, const session::entry& e, session_header head);
  void give_back_retained(std::uint64_t cookie);
  /// An operation needs no replay any more.
  void end_in_session(parcel& p) noexcept;

  // Outages (outage.cpp).
  bool covered(std::uint32_t a, std::uint32_t b) const noexcept;
  void mend_links(std::size_t number);
  void cut(std::uint32_t a, std::uint32_t b);
  void cut_one_way(std::uint32_t from, std::uint32_t to);
  void cut_operation(std::uint32_t index, bool gets_through);
  std::uint32_t lift(std::uint32_t index);
  void hold_late(std::uint32_t index);
  void connect_again(std::uint32_t a, std::uint32_t b);
  void send_point(std::uint32_t from, std::uint32_t to, parcel_kind what, const session::resume_point& point);
  void hear_point(std::uint32_t index);
  void end_parked(std::uint64_t cookie, errc error);
  void come_back_up(std::uint32_t owner, std::uint32_t other);
  /// The link is given up for good: both ends hear of it as of a death.
  void sever(std::uint32_t a, std::uint32_t b);
  void abandon(std::uint32_t owner, std::uint32_t other);

  // Death (death.cpp).
  void lose_what_it_sent(std::uint32_t dead);
  void strand_answers_of(std::uint32_t dead);
  void spread_the_news(std::uint32_t dead);
  template <class Choose>
  std::vector<std::uint32_t> in_order_of_posting(Choose&& choose) {
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t i = 0; i < pool_.size(); ++i)
      if (pool_[i].what != parcel_kind::none && choose(pool_[i])) chosen.push_back(i);
    std::sort(chosen.begin(), chosen.end(),
              [&](std::uint32_t a, std::uint32_t b) { return pool_[a].serial < pool_[b].serial; });
    return chosen;
  }

  world_options options_;
  /// Planted: swaps a packet with the one before it, if that is still on its way.
  void overtake(std::uint32_t index);
  bool overtaken_ = false;
  bool sessions_;  ///< options_.has_session()
  random_source random_;
  counters counted_;
  base::nanoseconds now_ = 0;
  std::uint64_t serial_ = 0;
  parcel_pool pool_;
  agenda agenda_;
  std::vector<endpoint> endpoints_;
  std::unordered_map<std::uint64_t, link> links_;  // looked up only, never walked: its order is not ours
  std::unordered_map<std::uint64_t, side> sides_;  // likewise
  std::vector<outage> outages_;                    // by number; those that are over cover nobody
  std::vector<std::uint32_t> woken_;
  std::vector<std::uint32_t> handed_out_;
};

}  // namespace verbena::transport::sim
