#include "runtime/engine/envelope_queue.hpp"

#include <algorithm>

namespace verbena::runtime {

queued_envelope* envelope_queue::find(const match_key& want) noexcept {
  for (queued_envelope& e : all_)
    if (e.what != queued_envelope::kind::gone && e.is.context == want.context &&
        (want.source == any_source || e.is.source == want.source) &&
        (want.label == any_tag || e.is.label == want.label))
      return &e;
  return nullptr;
}

void envelope_queue::remove(queued_envelope& e) noexcept {
  e.what = queued_envelope::kind::gone;
  --live_;
  tidy();
}

void envelope_queue::tidy() noexcept {
  const auto gone = [](const queued_envelope& e) { return e.what == queued_envelope::kind::gone; };
  while (!all_.empty() && gone(all_.front())) all_.pop_front();
  // Taken from the middle: searches should not walk over more graves than envelopes.
  constexpr std::size_t bearable = 1024;
  if (all_.size() > 2 * live_ + bearable) std::erase_if(all_, gone);
}

}  // namespace verbena::runtime
