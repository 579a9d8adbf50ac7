// Making and freeing communicators, and collective calls on them.
#include "tests/sim/rank_player.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::sim_tests {

/// True if a death explains that a collective call of this communicator failed.
bool rank_player::excused_by_death(std::uint32_t on, errc why, const char* name) {
  const bool excused = why == errc::peer_failed && t_.dead_in(on);
  if (!excused)
    t_.complain(self_, "communicator {}: {} ended with error {}: {}", on, name, static_cast<int>(why),
                last_text_);
  else
    t_.counted.note(event::failed);
  return excused;
}

void rank_player::play_making(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  const making& m = t_.p.makings[a.item];
  const auto me = static_cast<std::size_t>(rank_in(a.on));
  owned_communicator made;
  {
    const waiting now(*this, a.what, {}, {});
    const status got = loudly([&] {
      if (m.what == call::dup) made = dup(*on);
      if (m.what == call::split) made = split(*on, m.color[me], m.key[me]);
      if (m.what == call::create) {
        std::vector<rank> members;
        for (const int r : m.lists[me]) members.emplace_back(r);
        made = create(*on, members);
      }
      return status{};
    });
    if (got.error != errc::success) {
      excused_by_death(a.on, got.error, "the making of another one");
      return;
    }
  }
  if (!m.made[me].has_value()) {
    if (made)
      t_.complain(self_, "communicator {}: a making gave a rank that is in none a communicator", a.on);
    return;
  }
  const std::uint32_t number = *m.made[me];
  if (!made) return t_.complain(self_, "communicator {} was not made", number);
  if (made.size() != static_cast<int>(t_.p.groups[number].members.size()) ||
      made.rank().value != rank_in(number))
    return t_.complain(self_, "communicator {}: rank {} of {}", number, made.rank().value, made.size());
  const std::uint32_t slot =
      runtime::context_table::slot_of(runtime::communicator_access::state(made).context());
  t_.counted.note(event::communicators);
  t_.counted.note_if(std::find(slots_used_.begin(), slots_used_.end(), slot) != slots_used_.end(),
                     event::ids_used_again);
  slots_used_.push_back(slot);
  made_[number] = std::move(made);
}

/// Of a firm communicator all members agree that they are done with it; a loose one just goes, whatever is on its way.
void rank_player::play_free(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  cancel_on(a.on);
  if (!t_.p.groups[a.on].loose) {
    const waiting now(*this, a.what, {}, {});
    const status got = loudly([&] {
      barrier(*on);
      return status{};
    });
    if (got.error != errc::success) excused_by_death(a.on, got.error, "the barrier before its end");
  }
  cancel_on(a.on);  // what a knot left
  for (persistent& one : persistent_)
    if (one.on == a.on) one.request = {};
  made_[a.on].free();
}

rank_player::live_collective& rank_player::lay_out(std::uint32_t number) {
  const collective& what = t_.p.collectives[number];
  const std::int32_t me = rank_in(what.on);
  live_collective& c = collectives_.emplace_back();
  c.number = number;
  const collective_model model(what, number, 0, t_.p.groups[what.on].members.size());
  const bool words = what.what == call::reduce || what.what == call::allreduce;
  const std::size_t shift = words ? 0 : what.shift;
  c.in.assign(shift + model.in_bytes(me) + margin_bytes, margin_byte);
  c.out.assign(shift + model.out_bytes(me) + margin_bytes, margin_byte);
  c.in_at = c.in.data() + shift;
  c.out_at = c.out.data() + shift;
  if (!what.in_place) return c;
  const bool root = me == what.root;
  const auto mine = static_cast<std::size_t>(me) * what.count;
  if ((what.what == call::reduce && root) || what.what == call::allreduce || what.what == call::alltoall)
    c.in_at = c.out_at;
  if ((what.what == call::gather && root) || what.what == call::allgather) c.in_at = c.out_at + mine;
  if (what.what == call::scatter && root) c.out_at = c.in_at + mine;
  return c;
}

void rank_player::fill(live_collective& c) {
  const collective& what = t_.p.collectives[c.number];
  const collective_model model(what, c.number, c.round, t_.p.groups[what.on].members.size());
  const std::vector<std::byte> input = model.input(rank_in(what.on));
  std::byte* const to = what.what == call::broadcast ? c.out_at : c.in_at;
  if (!input.empty()) std::memcpy(to, input.data(), input.size());
}

persistent_request rank_player::init_collective(const communicator& on, live_collective& c) {
  const collective& what = t_.p.collectives[c.number];
  const rank root{what.root};
  switch (what.what) {
    case call::barrier:
      return barrier_init(on);
    case call::broadcast:
      return broadcast_init(on, c.out_at, what.count, root);
    case call::reduce:
      return what.custom ? reduce_init(on, c.in_at, c.out_at, what.count,
                                       reduction_by<std::uint64_t>(c.chain, false), root)
                         : reduce_init(on, c.in_at, c.out_at, what.count, element::u64, what.how, root);
    case call::allreduce:
      return what.custom ? allreduce_init(on, c.in_at, c.out_at, what.count,
                                          reduction_by<std::uint64_t>(c.chain, false))
                         : allreduce_init(on, c.in_at, c.out_at, what.count, element::u64, what.how);
    case call::gather:
      return gather_init(on, c.in_at, c.out_at, what.count, root);
    case call::scatter:
      return scatter_init(on, c.in_at, c.out_at, what.count, root);
    case call::allgather:
      return allgather_init(on, c.in_at, c.out_at, what.count);
    default:
      return alltoall_init(on, c.in_at, c.out_at, what.count);
  }
}

request rank_player::start_collective(const communicator& on, live_collective& c) {
  const collective& what = t_.p.collectives[c.number];
  const rank root{what.root};
  switch (what.what) {
    case call::barrier:
      return ibarrier(on);
    case call::broadcast:
      return ibroadcast(on, c.out_at, what.count, root);
    case call::reduce:
      return what.custom ? ireduce(on, c.in_at, c.out_at, what.count,
                                   reduction_by<std::uint64_t>(c.chain, false), root)
                         : ireduce(on, c.in_at, c.out_at, what.count, element::u64, what.how, root);
    case call::allreduce:
      return what.custom
                 ? iallreduce(on, c.in_at, c.out_at, what.count, reduction_by<std::uint64_t>(c.chain, false))
                 : iallreduce(on, c.in_at, c.out_at, what.count, element::u64, what.how);
    case call::gather:
      return igather(on, c.in_at, c.out_at, what.count, root);
    case call::scatter:
      return iscatter(on, c.in_at, c.out_at, what.count, root);
    case call::allgather:
      return iallgather(on, c.in_at, c.out_at, what.count);
    default:
      return ialltoall(on, c.in_at, c.out_at, what.count);
  }
}

void rank_player::run_collective(const communicator& on, live_collective& c) {
  const collective& what = t_.p.collectives[c.number];
  const rank root{what.root};
  switch (what.what) {
    case call::barrier:
      return barrier(on);
    case call::broadcast:
      return broadcast(on, c.out_at, what.count, root);
    case call::reduce:
      return what.custom ? reduce(on, c.in_at, c.out_at, what.count,
                                  reduction_by<std::uint64_t>(c.chain, false), root)
                         : reduce(on, c.in_at, c.out_at, what.count, element::u64, what.how, root);
    case call::allreduce:
      return what.custom
                 ? allreduce(on, c.in_at, c.out_at, what.count, reduction_by<std::uint64_t>(c.chain, false))
                 : allreduce(on, c.in_at, c.out_at, what.count, element::u64, what.how);
    case call::gather:
      return gather(on, c.in_at, c.out_at, what.count, root);
    case call::scatter:
      return scatter(on, c.in_at, c.out_at, what.count, root);
    case call::allgather:
      return allgather(on, c.in_at, c.out_at, what.count);
    default:
      return alltoall(on, c.in_at, c.out_at, what.count);
  }
}

/// Right, or failed because somebody died.
void rank_player::end_collective(live_collective& c, const status& got) {
  const collective& what = t_.p.collectives[c.number];
  const std::string_view name = call_names[static_cast<std::size_t>(what.what)];
  if (got.error != errc::success) {
    excused_by_death(what.on, got.error, std::string(name).c_str());
    return;
  }
  t_.counted.note_if(t_.dead_in(what.on), event::finished_anyway);
  const std::int32_t me = rank_in(what.on);
  const collective_model model(what, c.number, c.round, t_.p.groups[what.on].members.size());
  const std::vector<std::byte> must = model.output(me);
  const auto wrong = std::mismatch(must.begin(), must.end(), c.out_at);
  if (wrong.first != must.end())
    t_.complain(self_, "communicator {}: {} number {}: byte {} of {} is wrong", what.on, name, c.number,
                wrong.first - must.begin(), must.size());
  for (const auto* buffer : {&c.in, &c.out})
    for (std::size_t i = buffer->size() - margin_bytes; i < buffer->size(); ++i)
      if ((*buffer)[i] != margin_byte)
        return t_.complain(self_, "communicator {}: {} number {} wrote behind its buffer", what.on, name,
                           c.number);
}

void rank_player::play_collective(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  const collective& what = t_.p.collectives[a.item];
  t_.counted.note_if(what.in_place && what.what != call::barrier && what.what != call::broadcast,
                     event::in_place);
  t_.counted.note_if(what.custom && (what.what == call::reduce || what.what == call::allreduce),
                     event::custom_operator);
  t_.counted.note(what.as == form::blocking  ? event::blocking
                  : what.as == form::started ? event::started
                                             : event::persistent);
  live_collective& c = lay_out(a.item);
  fill(c);
  const auto pending = [&](request r) {
    list_of(a.on).add(std::move(r),
                      {kind::collective, a.on, 0, [this, &c](const status& s) { end_collective(c, s); }});
  };
  status got;
  if (what.as == form::started) {
    request r;
    got = loudly([&] {
      r = start_collective(*on, c);
      return status{};
    });
    if (got.error == errc::success) {
      if (what.count == 0 && !r.active()) return end_collective(c, {});  // nothing to do
      return pending(std::move(r));
    }
  } else if (what.as == form::blocking) {
    const waiting now(*this, a.what, {}, {});
    got = loudly([&] {
      run_collective(*on, c);
      return status{};
    });
  } else {
    persistent_request* kept = nullptr;
    got = loudly([&] {
      kept = &persistent_.emplace_back(persistent{a.on, init_collective(*on, c)}).request;
      const waiting now(*this, a.what, {}, {});
      return kept->start().wait(std::nothrow);
    });
    end_collective(c, got);
    if (got.error != errc::success || !comm(a.on)) return;
    c.round = 1;
    fill(c);
    got = loudly([&] {
      pending(kept->start());
      return status{};
    });
    if (got.error == errc::success) return;
  }
  end_collective(c, got);
}

}  // namespace verbena::sim_tests
