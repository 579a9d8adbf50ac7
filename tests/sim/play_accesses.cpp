// One-sided access: windows that all members open and close, and what they do in each other's memory in between.
#include "tests/sim/rank_player.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::sim_tests {

void rank_player::open_window(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  live_window& w = windows_[a.item];
  w.memory = t_.windows[a.item].memory(rank_in(a.on));
  w.memory.insert(w.memory.end(), margin_bytes, margin_byte);
  w.registered = register_memory(*on, w.memory.data(), w.memory.size() - margin_bytes);
  w.mine = w.registered.key();
  w.all.resize(t_.p.groups[a.on].members.size());
  const waiting now(*this, a.what, {}, {});
  const status got = loudly([&] {
    allgather(*on, &w.mine, w.all.data(), sizeof w.mine);
    return status{};
  });
  if (got.error == errc::success)
    w.keys = w.all;
  else
    excused_by_death(a.on, got.error, "the exchange of keys");
}

void rank_player::keep_access(std::uint32_t on, request r, std::function<void(const status&)> end) {
  list_of(on).add(std::move(r), {kind::access, on, 0, std::move(end)});
}

/// Denied may be what comes after a death: then windows close at any time.
void rank_player::end_access(const action& a, errc error) {
  if (error == errc::success) return;
  const bool of_the_dead = t_.dead() == t_.p.groups[a.on].members[static_cast<std::size_t>(a.partner)];
  t_.counted.note_if(of_the_dead, event::failed);
  const bool broke_off = error == errc::outcome_unknown &&
                         (is_atomic(a.what) || a.what == call::put_with_flag) &&
                         t_.p.world.link_outage.until > t_.p.world.link_outage.from;
  if (broke_off) return t_.windows[a.item].doubt(a.partner);
  if ((error == errc::peer_failed && of_the_dead) || (error == errc::access_denied && t_.dead_in(a.on)))
    return;
  t_.complain(self_, "communicator {}: {} of {} B at rank {} ended with error {}", a.on,
              call_names[static_cast<std::size_t>(a.what)], a.size, a.partner, static_cast<int>(error));
}

void rank_player::play_access(const action& a) {
  const auto on = comm(a.on);
  if (!on || windows_[a.item].keys.empty()) return;
  const remote_key key = windows_[a.item].keys[static_cast<std::size_t>(a.partner)];
  switch (a.what) {
    case call::put:
    case call::put_with_flag:
      return play_put(a, *on, key);
    case call::get:
      return play_get(a, *on, key);
    case call::flush:
      return play_flush(a, *on);
    case call::wait_flag:
      return play_wait_flag(a, *on);
    default:
      return play_atomic(a, *on, key);
  }
}

void rank_player::play_put(const action& a, const communicator& on, const remote_key& key) {
  const std::vector<std::byte>& data =
      buffers_.emplace_back(t_.windows[a.item].put(a.partner, a.offset, a.size));
  const rank to{a.partner};
  const std::uint64_t word = ++t_.words;
  const bool flagged = a.what == call::put_with_flag;
  if (flagged) {
    const std::uint32_t target = t_.p.groups[a.on].members[static_cast<std::size_t>(a.partner)];
    t_.flags[self_ * t_.p.world.size + target].push_back({a.item, a.offset, a.size, word});
  }
  if (a.started)
    return keep_access(a.on,
                       flagged ? iput_with_flag(on, data.data(), a.size, to, key, a.offset, word)
                               : iput(on, data.data(), a.size, to, key, a.offset),
                       [=, this](const status& s) { end_access(a, s.error); });
  const waiting now(*this, a.what, {}, {});
  end_access(a, loudly([&] {
                  flagged ? put_with_flag(on, data.data(), a.size, to, key, a.offset, word)
                          : put(on, data.data(), a.size, to, key, a.offset);
                  return status{};
                }).error);
}

/// What this rank put there before is there: it asks for that first.
void rank_player::play_get(const action& a, const communicator& on, const remote_key& key) {
  play_flush(a, on);
  const auto slice = [this, a] {
    const auto from = t_.windows[a.item].memory(a.partner).begin() + static_cast<std::ptrdiff_t>(a.offset);
    return std::vector<std::byte>(from, from + static_cast<std::ptrdiff_t>(a.size));
  };
  std::vector<std::byte>& got = buffers_.emplace_back(a.size + margin_bytes, margin_byte);
  const auto end = [this, a, &got, slice, before = slice()](const status& s) {
    end_access(a, s.error);
    if (s.error != errc::success) return;
    const std::vector<std::byte> now = slice();  // puts that were started since may have come or not
    for (std::size_t i = 0; i < got.size(); ++i)
      if (i < a.size ? got[i] != before[i] && got[i] != now[i] : got[i] != margin_byte)
        return t_.complain(self_, "communicator {}: get of {} B at offset {} of rank {}: byte {} is wrong",
                           a.on, a.size, a.offset, a.partner, i);
  };
  if (a.started) return keep_access(a.on, iget(on, got.data(), a.size, rank{a.partner}, key, a.offset), end);
  const waiting now(*this, a.what, {}, {});
  end(loudly([&] {
    get(on, got.data(), a.size, rank{a.partner}, key, a.offset);
    return status{};
  }));
}

void rank_player::play_atomic(const action& a, const communicator& on, const remote_key& key) {
  window_model& model = t_.windows[a.item];
  const rank at{a.partner};
  std::uint64_t& old = words_.emplace_back();
  const bool adds = a.what == call::fetch_add;
  const std::uint64_t expected = model.guess(a.partner, a.pick),
                      value = adds ? a.pick + 1 : model.fresh_value();
  const auto end = [=, this, &model, &old](const status& s) {
    end_access(a, s.error);
    if (s.error != errc::success) return;
    if (adds) return model.added(a.partner, value, old);
    model.swapped(a.partner, expected, value, old);
    t_.counted.note_if(old == expected, event::swapped);
  };
  if (a.started)
    return keep_access(
        a.on,
        adds ? ifetch_add(on, value, at, key, 0, old) : icompare_swap(on, expected, value, at, key, 8, old),
        end);
  const waiting now(*this, a.what, {}, {});
  end(loudly([&] {
    old = adds ? fetch_add(on, value, at, key, 0) : compare_swap(on, expected, value, at, key, 8);
    return status{};
  }));
}

void rank_player::play_flush(const action& a, const communicator& on) {
  const bool everywhere = a.pick % 3 == 0;
  const waiting now(*this, call::flush, {}, {});
  const status got = loudly([&] {
    everywhere ? flush_all(on) : flush(on, rank{a.partner});
    return status{};
  });
  if (got.error == errc::success) return;
  if (everywhere && got.error == errc::peer_failed && t_.dead()) return;
  action flushed = a;
  flushed.what = call::flush;
  end_access(flushed, got.error);
}

/// Words come in the order in which their puts were called, and what was put is there.
void rank_player::play_wait_flag(const action& a, const communicator& on) {
  const std::uint32_t origin = t_.p.groups[a.on].members[static_cast<std::size_t>(a.partner)];
  std::optional<std::uint64_t> word;
  const bool doubtful = t_.p.victim || t_.p.world.link_outage.until > t_.p.world.link_outage.from;
  if (a.started || doubtful) {  // whoever hears of a death may not put any more, and then nobody says so
    looking_ = true;
    give_up_ = false;
    while (!(word = test_flag(on, rank{a.partner})) && !give_up_) pause();
    looking_ = false;
    ++deeds_;
    if (!word) {
      if (!t_.dead() && !t_.windows[a.item].doubted(rank_in(a.on)))
        t_.complain(self_, "communicator {}: no flag came from rank {}", a.on, a.partner);
      return;
    }
  } else {
    const waiting now(*this, a.what, {}, {});
    word = wait_flag(on, rank{a.partner});
  }
  auto& expected = t_.flags[origin * t_.p.world.size + self_];
  while (doubtful && !expected.empty() && expected.front().word != *word)
    expected.pop_front();  // refused: see end_access
  if (expected.empty() || expected.front().word != *word)
    return t_.complain(self_, "flag {} came from rank {} out of turn", *word, origin);
  const flagged_put put = expected.front();
  expected.pop_front();
  const std::vector<std::byte>& must =
      t_.windows[put.window].memory(*t_.p.groups[t_.p.windows[put.window].on].rank_of(self_));
  for (std::size_t i = put.offset; i < put.offset + put.size; ++i)
    if (windows_[put.window].memory[i] != must[i])
      return t_.complain(self_, "window {}: flag {} came before byte {} of what it announces", put.window,
                         *word, i);
}

/// The region as all puts must have left it. Words stand where atomics work.
void rank_player::judge_window(std::uint32_t number, const char* when) {
  const live_window& w = windows_[number];
  if (t_.windows[number].doubted(rank_in(t_.p.windows[number].on))) return;
  const std::vector<std::byte>& must = t_.windows[number].memory(rank_in(t_.p.windows[number].on));
  for (std::size_t i = window::words; i < w.memory.size(); ++i)
    if (w.memory[i] != (i < must.size() ? must[i] : margin_byte))
      return t_.complain(self_, "window {}: byte {} of {} is wrong {}", number, i, must.size(), when);
  std::uint64_t words[2];
  std::memcpy(words, w.memory.data(), sizeof words);
  const std::string wrong =
      t_.windows[number].judge_words(rank_in(t_.p.windows[number].on), words[0], words[1]);
  if (!wrong.empty()) t_.complain(self_, "window {}: {}", number, wrong);
}

/// All have ended what they started, everything has been carried out, all know it; then the keys go, and are refused.
void rank_player::close_window(const action& a) {
  const auto on = comm(a.on);
  live_window& w = windows_[a.item];
  if (!on || w.keys.empty()) return;
  const auto together = [&](const char* what) {
    const waiting now(*this, a.what, {}, {});
    const status flushed = loudly([&] {
      flush_all(*on);
      return status{};
    });
    if (flushed.error != errc::success && !(flushed.error == errc::peer_failed && t_.dead()))
      t_.complain(self_, "communicator {}: {}", a.on, last_text_);
    const status got = loudly([&] {
      barrier(*on);
      return status{};
    });
    if (got.error != errc::success) excused_by_death(a.on, got.error, what);
    return got.error == errc::success;
  };
  for (std::size_t i = 0; i < lists_[0].requests.size(); ++i)
    if (lists_[0].abouts[i].what == kind::access) {
      const waiting now(*this, a.what, {}, {});
      static_cast<void>(lists_[0].requests[i].wait(std::nothrow));
    }
  collect(lists_[0]);
  const bool all_there = together("the barrier before keys go");
  w.closed = all_there && !t_.dead();
  if (w.closed) judge_window(a.item, "when all accesses have ended");
  const remote_key key = w.keys[a.pick % w.keys.size()];
  action late = a;
  late.partner = static_cast<std::int32_t>(a.pick % w.keys.size());
  w.registered = {};
  w.keys.clear();
  if (all_there && together("the barrier after keys went")) use_old_key(late, *on, key);
}

void rank_player::use_old_key(const action& a, const communicator& on, const remote_key& key) {
  buffers_.emplace_back(sizeof(std::uint64_t), std::byte{0x77});
  std::vector<std::byte>& data = buffers_.back();
  std::uint64_t& old = words_.emplace_back();
  const rank at{a.partner};
  keep_access(a.on,
              a.pick % 3 == 0   ? iput(on, data.data(), 1, at, key, window::words)
              : a.pick % 3 == 1 ? iget(on, data.data(), 1, at, key, window::words)
                                : ifetch_add(on, 1, at, key, 0, old),
              [=, this](const status& s) {
                if (s.error == errc::access_denied) return t_.counted.note(event::access_refused);
                if (s.error == errc::success)
                  return t_.complain(self_, "communicator {}: the key of a region that is gone was honoured",
                                     a.on);
                end_access(a, s.error);
              });
}

}  // namespace verbena::sim_tests
