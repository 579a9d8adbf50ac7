// Waiting for, testing and taking back what is pending.
#include "tests/sim/rank_player.hpp"

#include <span>

namespace verbena::sim_tests {

/// What is over goes out of the list, and is noted.
void rank_player::collect(request_list& from) {
  for (std::size_t i = 0; i < from.requests.size();) {
    if (from.requests[i].active()) {
      ++i;
      continue;
    }
    const status got = from.requests[i].wait(std::nothrow);
    const auto end = std::move(from.abouts[i].end);
    const auto at = static_cast<std::ptrdiff_t>(i);
    from.requests.erase(from.requests.begin() + at);
    from.abouts.erase(from.abouts.begin() + at);
    end(got);
  }
}

void rank_player::collect() {
  for (request_list& list : lists_) {
    for (request& r : list.requests)
      if (r.active() && r.done()) static_cast<void>(r.wait(std::nothrow));
    collect(list);
  }
}

/// Of firm communicators only: whatever they wait for can be sent, or received.
void rank_player::play_wait(const action& a) {
  request_list& list = lists_[0];
  if (list.requests.empty()) return;
  const std::size_t first = a.pick % list.requests.size();
  {
    const std::span<request> some = std::span(list.requests).subspan(first);
    const waiting now(*this, a.what, {}, {});
    static_cast<void>(either(
        a.throwing,
        [&] {
          if (a.what == call::wait) static_cast<void>(some.front().wait());
          if (a.what == call::wait_any) static_cast<void>(wait_any(some));
          if (a.what == call::wait_some) static_cast<void>(wait_some(some));
          if (a.what == call::wait_all) wait_all(some);
          return status{};
        },
        [&] {
          if (a.what == call::wait) static_cast<void>(some.front().wait(std::nothrow));
          if (a.what == call::wait_any) static_cast<void>(wait_any(some, std::nothrow));
          if (a.what == call::wait_some) static_cast<void>(wait_some(some, std::nothrow));
          if (a.what == call::wait_all) static_cast<void>(wait_all(some, std::nothrow));
          return status{};
        }));
  }
  collect(list);
}

void rank_player::play_test(const action& a) {
  request_list& list = lists_[a.started ? 0 : 1];
  if (list.requests.empty()) return;
  const std::size_t first = a.pick % list.requests.size();
  const std::span<request> some = std::span(list.requests).subspan(first);
  static_cast<void>(loudly([&] {
    if (a.what == call::test && some.front().test()) static_cast<void>(some.front().wait());
    if (a.what == call::test_any) static_cast<void>(test_any(some));
    if (a.what == call::test_some) static_cast<void>(test_some(some));
    if (a.what == call::test_all) static_cast<void>(test_all(some));
    return status{};
  }));
  collect(list);
}

bool rank_player::cancel(request_list& in, std::size_t index) {
  const bool in_time = in.requests[index].cancel();
  if (in_time) static_cast<void>(in.requests[index].wait(std::nothrow));
  return in_time;
}

void rank_player::play_cancel(const action& a) {
  request_list& list = lists_[a.started ? 0 : 1];
  if (list.requests.empty()) return;
  t_.counted.note_if(!cancel(list, a.pick % list.requests.size()), event::not_withdrawn);
  collect(list);
}

/// Receives of a communicator that goes.
void rank_player::cancel_on(std::uint32_t on) {
  for (request_list& list : lists_) {
    for (std::size_t i = 0; i < list.requests.size(); ++i)
      if (list.abouts[i].what == kind::receive && list.abouts[i].on == on) cancel(list, i);
    collect(list);
  }
}

void rank_player::take_back_receives() {
  for (request_list& list : lists_) {
    for (std::size_t i = 0; i < list.requests.size(); ++i)
      if (list.abouts[i].what == kind::receive) cancel(list, i);
  }
  collect();
}

/// The first thing of what it waits for that somebody else can do something about.
std::optional<rank_player::want> rank_player::wants(bool messages) const {
  if (!waits_) return std::nullopt;
  if (wants_message_ && wants_receive_ && messages == helped_)
    return std::nullopt;  // one half after the other
  if (const auto& wanted = messages ? wants_message_ : wants_receive_) return wanted;
  if (in_ < call::wait || in_ > call::wait_all) return std::nullopt;
  for (std::size_t i = 0; i < lists_[0].requests.size(); ++i) {
    const auto& about = lists_[0].abouts[i];
    if (lists_[0].requests[i].done()) continue;
    const auto me = static_cast<std::size_t>(rank_in(about.on));
    if (messages && about.what == kind::receive) {
      const received& r = t_.seen[about.on].receives[me][about.record];
      return want{true, about.on, r.want_source, r.want_label};
    }
    if (!messages && about.what == kind::send) {
      const sent& s = t_.seen[about.on].sends[me][about.record];
      return want{false, about.on, static_cast<std::int32_t>(s.to), s.label};
    }
  }
  return std::nullopt;
}

}  // namespace verbena::sim_tests
