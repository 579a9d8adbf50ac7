#include "tests/sim/rank_player.hpp"

#include "transport/sim/sim_fabric.hpp"

namespace verbena::sim_tests {

rank_player::rank_player(table& shared, std::uint32_t self)
    : t_(shared),
      self_(self),
      windows_(shared.p.windows.size()),
      context_(runtime::context_state::join(
          shared.job.member(self), shared.p.settings,
          std::make_unique<transport::sim::sim_fabric>(shared.world, peer{self}))),
      made_(shared.p.groups.size()),
      fiber_([this] { play(); }) {
  context_->take_turns([](void*) noexcept { fiber::pause(); }, nullptr);
}

rank_player::~rank_player() {
  for (request_list& list : lists_)
    for (request& r : list.requests) r.detach();
  for (live_window& w : windows_) w.registered = {};
}

std::optional<communicator> rank_player::comm(std::uint32_t on) const {
  if (on == 0) return runtime::communicator_access::handle(context_->world());
  if (on == 1 + self_) return runtime::communicator_access::handle(context_->self());
  if (!made_[on]) return std::nullopt;
  return made_[on];
}

bool rank_player::holds(std::uint32_t on) const noexcept {
  return on == 0 || on == 1 + self_ || made_[on];
}

std::string rank_player::whereabouts() const {
  if (looking_) return "wait_flag";
  if (!waits_) return "its own list";
  std::string text{call_names[static_cast<std::size_t>(in_)]};
  for (const auto& wanted : {wants_message_, wants_receive_})
    if (wanted)
      text += fmt::format(", {} rank {} of communicator {} with tag {}", wanted->message ? "from" : "to",
                          wanted->with, wanted->on, wanted->label);
  if (in_ < call::wait || in_ > call::wait_all) return text;
  static constexpr const char* words[] = {"send", "receive", "collective", "access"};
  for (std::size_t i = 0; i < lists_[0].requests.size(); ++i)
    if (!lists_[0].requests[i].done())
      text += fmt::format("; {} on communicator {}",
                          words[static_cast<std::size_t>(lists_[0].abouts[i].what)], lists_[0].abouts[i].on);
  return text;
}

void rank_player::play() {
  for (const action& a : t_.p.of[self_]) {
    step(a);
    ++deeds_;
    if (chance(t_.random, 3)) pause();
  }
}

void rank_player::step(const action& a) {
  if (is_collective(a.what)) {
    if (holds(a.on)) t_.counted.note(a.what);
    return play_collective(a);
  }
  if (holds(a.on)) t_.counted.note(a.what);
  switch (a.what) {
    case call::send:
    case call::ssend:
    case call::isend:
    case call::issend:
      return play_send(a);
    case call::send_init:
      return play_persistent_send(a);
    case call::recv:
    case call::irecv:
      return play_receive(a);
    case call::recv_init:
      return play_persistent_receive(a);
    case call::probe:
    case call::iprobe:
      return play_probe(a);
    case call::mprobe:
    case call::improbe:
      return play_matched(a);
    case call::sendrecv:
    case call::sendrecv_replace:
      return play_exchange(a);
    case call::wait:
    case call::wait_any:
    case call::wait_some:
    case call::wait_all:
      return play_wait(a);
    case call::test:
    case call::test_any:
    case call::test_some:
    case call::test_all:
      return play_test(a);
    case call::cancel:
      return play_cancel(a);
    case call::dup:
    case call::split:
    case call::create:
      return play_making(a);
    case call::free:
      return play_free(a);
    case call::register_memory:
      return open_window(a);
    case call::deregister:
      return close_window(a);
    default:
      return play_access(a);
  }
}

/// What did not end is seen by the judge; here what belongs to nobody's list.
void rank_player::conclude() {
  collect();
  for (request_list& list : lists_)
    for (std::size_t i = 0; i < list.requests.size(); ++i) {
      const auto what = list.abouts[i].what;
      const bool excused = t_.dead_in(list.abouts[i].on);
      if ((what == kind::collective && !excused) || (what == kind::access && !t_.dead()))
        t_.complain(self_, "communicator {}: a {} never ended", list.abouts[i].on,
                    what == kind::collective ? "collective" : "one-sided access");
    }
  for (std::uint32_t w = 0; w < windows_.size(); ++w)
    if (windows_[w].closed && !t_.dead()) judge_window(w, "at the end");
  const runtime::counters& counts = context_->engine().counts();
  t_.counted.note(event::late_messages, counts.stale);
  t_.counted.note(event::eager, counts.eager_sent);
  t_.counted.note(event::rendezvous, counts.rendezvous_sent);
  t_.counted.note(event::grants, counts.grants);
  if (counts.malformed != 0) t_.complain(self_, "{} packets were refused as malformed", counts.malformed);
  if (t_.dead()) return;
  if (!context_->engine().nothing_pending()) t_.complain(self_, "the engine keeps messages at the end");
  for (std::uint32_t g = 0; g < t_.p.groups.size(); ++g)
    if (t_.p.groups[g].rank_of(self_) && holds(g))
      if (const auto left = comm(g)->iprobe())
        t_.complain(self_, "communicator {}: a message of {} bytes from {} is left that nobody sent", g,
                    left->bytes, left->source.value);
}

}  // namespace verbena::sim_tests
