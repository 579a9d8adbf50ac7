// Everything one context owns, in the order it is made (it ends in the opposite one): bootstrap, segment, fabrics, engine, waiter, communicators. Here
// waiting happens: the engine below never blocks, the handles above hold no state. Made by `join`, for programs through
// PMIx, for tests and simulations with an in_process bootstrap.
#pragma once

#include "base/job_page.hpp"
#include "base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/communicator_state.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/gate.hpp"
#include "runtime/node_memory.hpp"
#include "runtime/one_sided.hpp"
#include "runtime/pending_work.hpp"
#include "runtime/shared_blocks.hpp"
#include "runtime/waiter.hpp"
#include "transport/routed_fabric.hpp"

#include <unistd.h>
#include <verbena/request.hpp>

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace verbena::runtime {

/// A send or a receive behind a request handle; lives in its context's pool.
struct pooled_operation final : pending_work {
  communicator_state* on = nullptr;
  bool is_receive = false;
  std::size_t size = 0;  ///< of the message or the buffer, for the error text
  rank with{};           ///< as the caller named it
  tag label{};
  std::shared_ptr<const shape> form;  ///< of memory that does not lie in a row
  bool taken = false;  ///< a request stands for it, or its detached end is awaited
  pooled_operation* next_free = nullptr;

  bool cancel() noexcept override;
  [[noreturn]] void raise() const override;
  void release() noexcept override;
};

class context_state {
 public:
  static constexpr std::uint32_t world_slot = 1;
  static constexpr std::uint32_t self_slot = 2;

  /// Joins the job that `boot` knows of. `simulated`: the way to all other ranks, instead of the real fabrics; then the
  /// caller turns `progress` itself, and blocking calls may be made only if it gives `take_turns` something to do.
  static std::unique_ptr<context_state> join(std::unique_ptr<bootstrap> boot, const base::settings& settings,
                                             std::unique_ptr<transport::sim::sim_fabric> simulated = nullptr);
  ~context_state();
  context_state(const context_state&) = delete;
  context_state& operator=(const context_state&) = delete;

  const job_info& job() const noexcept { return boot_->job(); }
  const base::settings& settings() const noexcept { return settings_; }
  runtime::engine& engine() noexcept { return *engine_; }
  communicator_state& world() noexcept { return *communicators_[world_slot]; }
  communicator_state& self() noexcept { return *communicators_[self_slot]; }
  transport::routed_fabric& fabric() noexcept { return *fabric_; }
  bootstrap& boot() noexcept { return *boot_; }

  /// Simulated: what a blocking call does between its looks (fibers of one thread: lets others run).
  void take_turns(void (*next)(void*) noexcept, void* argument) noexcept { waiter_->take_turns(next, argument); }

  /// Where threads enter and leave.
  gate& doors() noexcept { return doors_; }

  bool progress(base::nanoseconds now) { return engine_->progress(now); }
  /// The same at the real time, read only now and then.
  bool progress() noexcept;
  /// One look for a caller that may come again soon or late (test, probe): what counts time must not take its absence for
  /// anybody's silence.
  bool look_once() noexcept {
    if (base::coarse_now() > now_) ticks_ = 0;
    return progress();
  }
  /// Makes progress and spins, yields or sleeps until `look()` says true; `look` does not make progress itself.
  /// `what`: the operation that it waits for, if it is one: for the words about a wait that lasts.
  template <class Look>
  void wait_for(Look&& look, const operation* what = nullptr);
  void wait(const operation& op) {
    if (!op.done())
      wait_for([&] { return op.done(); }, &op);
  }

  /// Sends that have returned are not lost: waits until their copies have left, or their receivers are gone.
  void send_kept();

  /// Makes progress and tries: at least once, and if `patient` again for about a millisecond. True if it worked.
  template <class Try>
  bool try_for_a_moment(bool patient, Try&& attempt);

  /// Looks for the next message of one peer until it is there, other things want to be done, or it is time to wait in
  /// earnest. `look()` is a engine::receive_next. True: taken. False: receive the ordinary way.
  template <class Look>
  bool take_next(Look&& look);

  /// Enters a communicator in its slot, which the engine knows as live.
  communicator_state& adopt(std::unique_ptr<communicator_state> made);
  /// Its handle is gone: it goes too, now or when what was started on it has ended.
  void retire(communicator_state& of) noexcept;
  /// Lets those go that only waited for operations.
  void reap() noexcept;
  one_sided_works& accesses() noexcept { return accesses_; }
  node_memory& memory() noexcept { return *memory_; }
  shared_blocks& blocks() noexcept { return *blocks_; }
  bool has_requests_of(const communicator_state& of) const noexcept;

  /// As the job page says; without one this process is alone, or simulated.
  unsigned cores() const noexcept { return page_ ? page_->header().cores : 1; }
  void wake(peer member) noexcept;
  base::nanoseconds spin_budget() const noexcept { return waiter_->spin_budget(); }

  // Where wait_any begins to look, so that it favours nobody.
  std::size_t next_pick() const noexcept { return last_pick_ + 1; }
  void picked(std::size_t index) noexcept { last_pick_ = index; }

  pooled_operation& take_operation();
  void release(pooled_operation& p) noexcept;

  /// The engine's counters and the fabrics'.
  counters counted() const;

  /// "rank 3: killed by signal 9", as far as the job page knows.
  std::string obituary(peer who) const;
  /// What is known of why a call with that rank ended so.
  std::string reason(errc why, peer who) const;

 private:
  context_state(std::unique_ptr<bootstrap> boot, const base::settings& settings);
  void open_segment();
  void forget_all() noexcept;
  void connect();
  std::string fate(peer who) const;
  void await_peers(base::nanoseconds at_most);
  void make_first_communicators();
  void print_ways();
  void print_counters() const;

  /// One wait that has come to sleeping (slow_wait.cpp).
  struct slow_wait {
    const operation* what = nullptr;
    base::nanoseconds since = 0;  ///< 0: not yet
    base::nanoseconds asked = 0;  ///< when a rank of another host was; 0: not
    std::uint32_t whom = 0;       ///< that one
    bool told = false;
  };
  void notice(slow_wait& w) noexcept;
  void publish_wait(const wait_report& r) noexcept;
  void end_notice(const slow_wait& w) noexcept;
  std::string words_of(const wait_report& r, base::nanoseconds lasted) const;
  std::string wait_of(std::uint32_t job_rank) const;
  bool must_be_asked(std::uint32_t job_rank) const;

  gate doors_;
  base::settings settings_;
  bool simulated_ = false;
  bool made_by_ranks_ = false;  ///< the segment: no launcher writes who has left
  pid_t process_ = ::getpid();
  int unwinding_at_join_ = std::uncaught_exceptions();
  std::unique_ptr<bootstrap> boot_;
  base::mapping segment_;
  std::optional<base::job_page> page_;
  std::uint32_t local_index_ = 0;
  std::unique_ptr<transport::routed_fabric> fabric_;
  std::unique_ptr<runtime::engine> engine_;
  std::unique_ptr<waiter> waiter_;
  std::unique_ptr<shared_blocks> blocks_;
  std::unique_ptr<node_memory> memory_;
  one_sided_works accesses_;
  std::vector<std::unique_ptr<communicator_state>> communicators_;  ///< by slot
  std::vector<communicator_state*> retired_;                        ///< freed, with operations under way
  std::size_t requests_ = 0;                                        ///< operations that are taken
  std::deque<pooled_operation> operations_;
  pooled_operation* free_operations_ = nullptr;
  std::size_t last_pick_ = 0;
  unsigned ticks_ = 0;  ///< looks; every so many, and at 0, the clock is read
  unsigned taken_ = 0;  ///< receives by take_next since others were looked after
  base::nanoseconds now_ = 0;
};

template <class Look>
void context_state::wait_for(Look&& look, const operation* what) {
  slow_wait this_wait{.what = what};
  waiter_->wait(
      [&] {
        progress();
        return look();
      },
      [&]() -> base::nanoseconds {
        notice(this_wait);
        ticks_ = 0;  // once it has slept, the time it knows is old
        if (!fabric_->arm()) return 0;
        // Room for what was refused is announced by a ring where the fabric can; where it cannot, try now and then.
        return engine_->retrying() ? waiter::first_sleep : base::never;
      },
      [&] {
        fabric_->disarm();
        end_notice(this_wait);
      });
}

template <class Try>
bool context_state::try_for_a_moment(bool patient, Try&& attempt) {
  constexpr int tries_per_clock = 64;
  patient = patient && !simulated_;  // real time does not count there
  base::nanoseconds until = 0;
  do {
    for (int i = 0; i < (patient ? tries_per_clock : 1); ++i) {
      progress();
      if (attempt()) return true;
      doors_.pass();
    }
    if (!patient) return false;
    const base::nanoseconds now = base::steady_now();
    if (until == 0) until = now + waiter::longest_yield;
    if (now >= until) return false;
    if (spin_budget() == 0) yield_cpu();
  } while (true);
}

template <class Look>
[[gnu::always_inline]] inline bool context_state::take_next(Look&& look) {
  constexpr int rounds = 8, looks_per_round = 64;  // about a microsecond: a peer that answers at once
  constexpr unsigned turns_for_others = 32;        // every so often all channels get a look
  if (++taken_ % turns_for_others == 0) {
    progress();
    if (!engine_->next_allowed()) return false;
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < looks_per_round; ++i) {
      const transport::next_packet found = look();
      if (found == transport::next_packet::taken) return true;
      if (found == transport::next_packet::other) return false;
    }
    progress();  // may bring anything, so what is older now must not be overtaken
    doors_.pass();
    if (!engine_->next_allowed() || waiter_->spin_budget() == 0) return false;
  }
  return false;
}

inline bool context_state::progress() noexcept {
  constexpr unsigned ticks_per_clock = 64;
  if (ticks_++ % ticks_per_clock == 0) {
    now_ = base::steady_now();
    if (!retired_.empty()) [[unlikely]]
      reap();
  }
  const bool moved = engine_->progress(now_);
  if (moved && doors_.keeps_apart()) [[unlikely]]
    waiter_->call_sleepers();
  return moved;
}

}  // namespace verbena::runtime
