// The latest messages of one peer that has sent far more than was received: envelopes of 32 bytes in the
// order they came, behind what lies in the matcher. A sender over its budget keeps its data, but not its
// envelopes, of which there may be a million; the matcher, which finds any message at once, would need ten
// times the memory for each. Searching here is linear, so the engine moves envelopes from the front into the
// matcher whenever there is room. It must not know the protocols.
#pragma once

#include "runtime/engine/message.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>

namespace verbena::runtime {

struct queued_envelope {
  enum class kind : std::uint8_t {
    gone,      ///< matched already
    envelope,  ///< the data is with the sender
    held       ///< the message lies in a parcel
  };
  match_key is;
  kind what = kind::gone;
  std::uint8_t method = 0;  ///< transport::bulk_method the sender proposes
  std::uint64_t total = 0;
  union {
    wire::handle sender = {};
    parcel* held;
  };
};
static_assert(sizeof(queued_envelope) == 32);

class envelope_queue {
 public:
  bool empty() const noexcept { return live_ == 0; }
  std::size_t size() const noexcept { return live_; }

  void push(const queued_envelope& e) {
    all_.push_back(e);
    ++live_;
  }
  /// The oldest that a receive matches, or null.
  queued_envelope* find(const match_key& want) noexcept;
  /// The oldest; not empty.
  queued_envelope& front() noexcept { return all_.front(); }
  /// Takes one out.
  void remove(queued_envelope& e) noexcept;

  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].what != queued_envelope::kind::gone) visit(all_[i]);
  }
  /// Takes out all that `unwanted` says yes to.
  template <class Unwanted>
  void remove_if(Unwanted&& unwanted) {
    for_each([&](queued_envelope& e) {
      if (!unwanted(e)) return;
      e.what = queued_envelope::kind::gone;
      --live_;
    });
    tidy();
  }

 private:
  void tidy() noexcept;

  std::deque<queued_envelope> all_;  // the front is never `gone`
  std::size_t live_ = 0;
};

}  // namespace verbena::runtime
