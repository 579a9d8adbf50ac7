#include "collectives/announcement.hpp"

#include "collectives/communicator_state.hpp"

namespace verbena::collectives {

std::string_view name(call_kind what) noexcept {
  constexpr std::string_view names[] = {
      "nothing", "barrier", "broadcast", "reduce",   "allreduce",
      "gather",  "scatter", "allgather", "alltoall", "a call that makes communicators"};
  const auto at = static_cast<std::size_t>(what);
  return at < std::size(names) ? names[at] : names[0];
}

int announcement_watch::look_at_all() noexcept {
  --looks_;  // no more of them matter
  if (found_ >= 0) return found_;
  if (!home_.node.valid() || number_ == 0) return -1;
  const base::nanoseconds now = base::steady_now();
  const bool first = next_ == 0;
  if (now < next_) return -1;
  next_ = now + base::millisecond;
  if (first) return -1;  // reading the others' lines costs them something, so not before a millisecond
  for (int member = 0; member < home_.size; ++member)
    if (home_.differs(member, number_, likeness_)) return found_ = member;
  return -1;
}

}  // namespace verbena::collectives
