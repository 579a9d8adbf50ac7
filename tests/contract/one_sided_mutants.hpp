// Mutants of one-sided access, of death and of sharing.
#pragma once

#include "packet_mutants.hpp"

namespace verbena::contract::mutants {

struct puts_one_byte_off : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "put and get move bytes";
  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                  operation& op) override {
    return mutant::put(to, local, key, local.size > 50'000 ? offset + 1 : offset, op);
  }
};

/// Carries out a put only a while after it said so.
struct put_is_overtaken : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "a packet follows a put";
  std::vector<std::function<bool()>> late;
  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                  operation& op) override {
    op.start();
    late.push_back([this, to, local, key, offset, &op, wait = 3]() mutable {
      if (--wait > 0) return false;
      operation::hook done = op.on_done;  // start anew below, as if nothing had been
      op.on_done = nullptr;
      op.complete();
      op.on_done = done;
      return mutant::put(to, local, key, offset, op) != post_result::again;
    });
    return post_result::pending;
  }
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    const std::size_t before = late.size();
    std::erase_if(late, [](auto& run) { return run(); });
    return mutant::poll(now, sink) + before;
  }
};

/// The flag travels by itself and the data some polls later.
struct flag_overtakes_its_put : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "a flag follows its put";
  struct late_put {
    peer to;
    std::vector<std::byte> copy;
    remote_key key;
    std::uint64_t offset;
    int wait = 3;
    operation op;
  };
  std::vector<std::unique_ptr<late_put>> late;  // they stay: the copy is read until the put has ended
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            std::uint64_t word, operation& op) override {
    const post_result result = mutant::put_with_flag(to, {}, key, offset, word, op);
    if (result != post_result::pending || local.size == 0) return result;
    auto p = std::make_unique<late_put>();
    p->to = to;
    p->copy.assign(local.data, local.data + local.size);
    p->key = key;
    p->offset = offset;
    late.push_back(std::move(p));
    return result;
  }
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    std::size_t waiting = 0;
    for (auto& p : late) {
      if (p->wait > 0 && --p->wait == 0)
        mutant::put(p->to, {p->copy.data(), p->copy.size()}, p->key, p->offset, p->op);
      waiting += p->wait > 0 ? 1 : 0;
    }
    return mutant::poll(now, sink) + waiting;
  }
};

struct loses_flags : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "a flag follows its put";
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset, std::uint64_t,
                            operation& op) override {
    return mutant::put(to, local, key, offset, op);
  }
};

struct cuts_flags_to_32_bits : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "a flag follows its put";
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            std::uint64_t word, operation& op) override {
    return mutant::put_with_flag(to, local, key, offset, static_cast<std::uint32_t>(word), op);
  }
};

/// Says `done` while the network still reads the caller's memory.
struct done_before_it_is_read : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "put and get move bytes";
  std::vector<std::unique_ptr<operation>> hidden;
  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation&) override {
    hidden.push_back(std::make_unique<operation>());
    const post_result result = mutant::put(to, local, key, offset, *hidden.back());
    return result == post_result::pending ? post_result::done : result;
  }
};

struct forgets_to_complete : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "put and get move bytes";
  std::vector<std::unique_ptr<operation>> hidden;
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                  operation& op) override {
    hidden.push_back(std::make_unique<operation>());
    const post_result result = mutant::get(to, local, key, offset, *hidden.back());
    if (result == post_result::pending) op.start();
    return result;
  }
};

struct completes_inside_get : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "put and get move bytes";
  std::vector<std::unique_ptr<operation>> hidden;
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                  operation& op) override {
    hidden.push_back(std::make_unique<operation>());
    const post_result result = mutant::get(to, local, key, offset, *hidden.back());
    if (result == post_result::pending) {
      op.start();
      op.complete();
    }
    return result;
  }
};

struct adds_twice : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "atomics are atomic";
  int sent = 0;
  post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                        std::uint64_t word, operation& op) override {
    return mutant::fetch_add(to, local, key, offset, ++sent == 20 ? 2 * word : word, op);
  }
};

struct swaps_always : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "atomics are atomic";
  post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset, std::uint64_t,
                           std::uint64_t desired, operation& op) override {
    return mutant::compare_swap(to, local, key, offset, 42 + (desired - desired), desired, op);
  }
};

/// Takes the empty key for an empty range instead of refusing it.
struct shrugs_at_no_key : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "wrong keys are refused";
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                  operation& op) override {
    if (key.handle != 0) return mutant::get(to, local, key, offset, op);
    return post_result::done;
  }
};

struct wrong_keys_succeed : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "wrong keys are refused";
  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                  operation& op) override {
    const post_result result = mutant::put(to, local, key, offset, op);
    if (result == post_result::pending) checked.push_back(&op);
    return result;
  }
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    const std::size_t events = mutant::poll(now, sink);
    std::erase_if(checked, [](operation* op) {
      if (op->done()) op->result.error = errc::success;
      return op->done();
    });
    return events;
  }
  std::vector<operation*> checked;
};

/// Hands out regions whose end revokes nothing: they stand in another table.
struct regions_stay : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "regions are owned once";
  key_table elsewhere;
  std::vector<table_region> held;
  table_region register_memory(buffer local) override {
    held.push_back(mutant::register_memory(local));
    return table_region{elsewhere, held.back().key()};
  }
};

/// Counts on a death being told `times` times.
struct death_repeater : passing_sink {
  death_repeater(sink_face& sink, int times) : passing_sink(sink), times_(times) {}
  void on_peer_down(peer who, errc why) noexcept override {
    for (int i = 0; i < times_; ++i) to.on_peer_down(who, why);
  }
  int times_;
};

struct reports_a_death_twice : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "two deaths";
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    death_repeater watched{sink, 2};
    return mutant::poll(now, watched);
  }
};

struct never_reports_a_death : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "two deaths";
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    death_repeater watched{sink, 0};
    return mutant::poll(now, watched);
  }
};

/// Reports the death at once, with operations still pending and packets still to come.
struct reports_a_death_too_early : mutant {
  reports_a_death_too_early(sim::sim_world& world, peer self) : mutant(world, self), world_of(world) {}
  static constexpr const char* caught_by = "a death at any moment";
  sim::sim_world& world_of;
  std::vector<std::uint32_t> told;
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    for (std::uint32_t i = 0; i < world_of.size(); ++i)
      if (!world_of.alive(peer{i}) && std::find(told.begin(), told.end(), i) == told.end()) {
        told.push_back(i);
        sink.on_peer_down(peer{i}, errc::peer_failed);
      }
    death_repeater watched{sink, 0};
    return mutant::poll(now, watched) + (told.empty() ? 0 : told.size());
  }
};

struct sends_to_the_dead : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "a death at any moment";
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    const post_result result = mutant::send(to, head, size, write);
    if (result != post_result::down) return result;
    keep(to, head, size, write);
    return post_result::done;
  }
};

struct takes_any_ticket : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "forged tickets are refused";
  post_result accept(peer to, buffer local, const remote_key& ticket, operation& op) override {
    const post_result result = mutant::accept(to, local, ticket, op);
    return result == post_result::down ? post_result::done : result;
  }
};

struct cannot_withdraw : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "withdrawn offers are gone";
  bool withdraw(peer, const remote_key&) override { return true; }
};

struct withdraws_what_was_accepted : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "withdrawn offers are gone";
  bool withdraw(peer to, const remote_key& ticket) override {
    mutant::withdraw(to, ticket);
    return true;
  }
};

struct shares_all_but_the_last_byte : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "offers move bytes";
  post_result accept(peer to, buffer local, const remote_key& ticket, operation& op) override {
    if (local.size < 65'536) return mutant::accept(to, local, ticket, op);
    static std::vector<std::byte> elsewhere(6 << 20);
    return mutant::accept(to, {elsewhere.data(), local.size}, ticket, op);
  }
};

}  // namespace verbena::contract::mutants
