// Plays one rank's list, in a fiber, through the public interface: makes the calls, notes what they show, and holds
// what they leave pending. The director (director.hpp) gives it turns, and unties knots for it: then it makes calls in
// the name of the rank that the list does not have. Each group of calls has its file: play_messages.cpp,
// play_requests.cpp, play_groups.cpp, play_accesses.cpp.
#pragma once

#include "runtime/context_state.hpp"
#include "tests/sim/collective_model.hpp"
#include "tests/sim/fiber.hpp"
#include "tests/sim/table.hpp"

#include <verbena/verbena.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace verbena::sim_tests {

/// Requests and, side by side, what they are.
struct request_list {
  struct about {
    enum class kind : std::uint8_t { send, receive, collective, access } what = kind::send;
    std::uint32_t on = 0;    ///< communicator
    std::size_t record = 0;  ///< in what was seen of it
    std::function<void(const status&)> end;
  };
  std::vector<request> requests;
  std::vector<about> abouts;

  void add(request r, about a) {
    requests.push_back(std::move(r));
    abouts.push_back(std::move(a));
  }
};
using kind = request_list::about::kind;

class rank_player {
 public:
  rank_player(table& shared, std::uint32_t self);
  ~rank_player();
  rank_player(const rank_player&) = delete;
  rank_player& operator=(const rank_player&) = delete;

  // For the director.
  void turn() { fiber_.resume(); }
  bool ended() const noexcept { return fiber_.ended(); }
  bool over() const noexcept { return ended() || hung_ || !t_.alive(self_); }
  std::uint64_t deeds() const noexcept { return deeds_; }
  bool progress() {
    const bool moved = context_->progress(t_.world.now());
    context_->reap();
    return moved;
  }
  runtime::context_state& context() noexcept { return *context_; }
  /// What it waits in: for words.
  std::string whereabouts() const;

  /// What it waits for and may never get: a message, or the receive of one.
  struct want {
    bool message = false;  ///< otherwise a receive at `with`
    std::uint32_t on = 0;
    std::int32_t with = -1;
    std::int32_t label = 0;
  };
  std::optional<want> wants(bool messages) const;
  void was_helped() noexcept { helped_ = !helped_; }
  bool holds(std::uint32_t on) const noexcept;
  void send_for_knot(std::uint32_t on, std::int32_t to, std::int32_t label);
  void receive_for_knot(std::uint32_t on, std::int32_t from);
  void give_up_looking() noexcept { give_up_ = true; }
  bool looks() const noexcept { return looking_; }
  void hang() noexcept { hung_ = true; }
  bool hung() const noexcept { return hung_; }

  void collect();
  void take_back_receives();
  void conclude();

 private:
  void play();
  void step(const action& a);
  void pause() noexcept { fiber::pause(); }
  std::optional<communicator> comm(std::uint32_t on) const;
  std::int32_t rank_in(std::uint32_t on) const { return *t_.p.groups[on].rank_of(self_); }
  request_list& list_of(std::uint32_t on) noexcept { return lists_[t_.p.groups[on].loose ? 1 : 0]; }

  /// A call in its throwing or its quiet form; what was thrown becomes a status.
  template <class Throwing, class Quiet>
  status either(bool throwing, Throwing&& loud, Quiet&& quiet);
  template <class Throwing>
  status loudly(Throwing&& call);
  /// While this lives, the rank is in a call that others may have to end.
  struct waiting {
    rank_player& who;
    waiting(rank_player& of, call in, std::optional<want> message, std::optional<want> receive) : who(of) {
      who.in_ = in;
      who.wants_message_ = message;
      who.wants_receive_ = receive;
      who.waits_ = true;
    }
    ~waiting() {
      who.waits_ = false;
      ++who.deeds_;
    }
  };

  // play_messages.cpp
  struct outgoing {
    std::size_t record = 0;
    std::byte* data = nullptr;
  };
  /// The next message of its kind, with its contents; `into`: where to, or null for a buffer of its own.
  outgoing note_send(std::uint32_t on, std::int32_t to, std::int32_t label, std::size_t size,
                     std::byte* into = nullptr);
  std::size_t note_receive(std::uint32_t on, std::int32_t from, std::int32_t label, std::size_t room);
  received& receive_at(std::uint32_t on, std::size_t record) {
    return t_.seen[on].receives[static_cast<std::size_t>(rank_in(on))][record];
  }
  void end_send(std::uint32_t on, std::size_t record, errc error);
  void end_receive(std::uint32_t on, std::size_t record, const status& got);
  void keep_send(std::uint32_t on, std::size_t record, request r);
  void keep_receive(std::uint32_t on, std::size_t record, request r);
  void start_receive(const action& a);
  void play_send(const action& a);
  void play_receive(const action& a);
  void play_probe(const action& a);
  void play_matched(const action& a);
  void receive_probed(const action& a, const status& seen);
  void play_persistent_send(const action& a);
  void play_persistent_receive(const action& a);
  void play_exchange(const action& a);
  void read_truncation(status& got) const;

  // play_requests.cpp
  void play_wait(const action& a);
  void play_test(const action& a);
  void play_cancel(const action& a);
  void collect(request_list& from);
  bool cancel(request_list& in, std::size_t index);
  void cancel_on(std::uint32_t on);

  // play_groups.cpp
  void play_making(const action& a);
  void play_free(const action& a);
  void play_collective(const action& a);
  struct live_collective {
    std::uint32_t number = 0, round = 0;
    std::vector<std::byte> in, out;  ///< with a shift before and a margin behind
    std::byte* in_at = nullptr;
    std::byte* out_at = nullptr;
    std::function<std::uint64_t(const std::uint64_t&, const std::uint64_t&)> chain = collective_model::chain;
  };
  live_collective& lay_out(std::uint32_t number);
  void fill(live_collective& c);
  persistent_request init_collective(const communicator& on, live_collective& c);
  request start_collective(const communicator& on, live_collective& c);
  void run_collective(const communicator& on, live_collective& c);
  void end_collective(live_collective& c, const status& got);
  bool excused_by_death(std::uint32_t on, errc why, const char* call);

  // play_accesses.cpp
  struct live_window {
    std::vector<std::byte> memory;
    region registered;
    remote_key mine;
    std::vector<remote_key> all;   ///< as exchanged; after a death others may still be at it
    std::vector<remote_key> keys;  ///< empty: not open
    bool closed = false;
  };
  void open_window(const action& a);
  void close_window(const action& a);
  void play_access(const action& a);
  void play_put(const action& a, const communicator& on, const remote_key& key);
  void play_get(const action& a, const communicator& on, const remote_key& key);
  void play_atomic(const action& a, const communicator& on, const remote_key& key);
  void play_flush(const action& a, const communicator& on);
  void play_wait_flag(const action& a, const communicator& on);
  void use_old_key(const action& a, const communicator& on, const remote_key& key);
  void keep_access(std::uint32_t on, request r, std::function<void(const status&)> end);
  void end_access(const action& a, errc error);
  void judge_window(std::uint32_t number, const char* when);

  table& t_;
  const std::uint32_t self_;
  std::uint64_t deeds_ = 0;
  bool waits_ = false, looking_ = false, give_up_ = false, hung_ = false;
  bool helped_ = false;  ///< an odd number of times
  call in_ = call::isend;
  std::optional<want> wants_message_, wants_receive_;
  std::string last_text_;

  // Buffers outlive the context, handles end before it.
  std::deque<std::vector<std::byte>> buffers_;
  std::deque<std::uint64_t> words_;
  std::deque<live_collective> collectives_;
  std::vector<live_window> windows_;
  std::unique_ptr<runtime::context_state> context_;
  std::vector<owned_communicator> made_;  ///< by number
  std::vector<std::uint32_t> slots_used_;
  struct persistent {
    std::uint32_t on;
    persistent_request request;
  };
  std::deque<persistent> persistent_;
  request_list lists_[3];  ///< of firm communicators, of loose ones, of knots
  fiber fiber_;
};

template <class Throwing>
status rank_player::loudly(Throwing&& call) {
  status failed;
  try {
    return call();
  } catch (const error& e) {
    failed.error = e.reason();
    last_text_ = e.what();
  }
  return failed;
}

template <class Throwing, class Quiet>
status rank_player::either(bool throwing, Throwing&& loud, Quiet&& quiet) {
  if (!throwing) return quiet();
  status got = loudly(loud);
  if (got.error == errc::truncated) read_truncation(got);
  if (got.error == errc::peer_failed &&
      last_text_.find(fmt::format("rank {}", t_.p.victim.value_or(~0U))) == std::string::npos)
    t_.complain(self_, "an error does not name the dead: {}", last_text_);
  return got;
}

}  // namespace verbena::sim_tests
