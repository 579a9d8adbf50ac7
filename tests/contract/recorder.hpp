// A sink that keeps what it is told, and notices when it is told outside poll; and an operation that counts
// its ends. What every check looks at.
#pragma once

#include "transport/fabric.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace verbena::contract {

using transport::buffer;
using transport::envelope;
using transport::operation;
using transport::peer;
using transport::peer_limits;
using transport::post_result;
using transport::remote_key;

struct event {
  enum class kind : std::uint8_t { packet, flag, down, limits };
  kind what = kind::packet;
  std::uint32_t from = 0;
  envelope head;
  std::vector<std::byte> bytes;
  std::uint64_t word = 0;
  errc why = errc::success;
};

class recorder {
 public:
  std::vector<event> events;
  std::size_t outside_poll = 0;
  bool polling = false;
  std::function<void(const event&)> look;  ///< called with each event, while the sink is being called

  void on_packet(peer from, envelope head, std::span<const std::byte> payload) noexcept {
    event e{event::kind::packet, from.index, head, {payload.begin(), payload.end()}, 0, errc::success};
    keep(std::move(e));
  }
  void on_flag(peer from, std::uint64_t word) noexcept {
    keep({event::kind::flag, from.index, {}, {}, word, errc::success});
  }
  void on_peer_down(peer from, errc why) noexcept { keep({event::kind::down, from.index, {}, {}, 0, why}); }
  void on_limits_changed(peer from) noexcept {
    keep({event::kind::limits, from.index, {}, {}, 0, errc::success});
  }

  std::size_t count(event::kind what) const {
    std::size_t n = 0;
    for (const event& e : events) n += e.what == what ? 1 : 0;
    return n;
  }
  std::size_t packets() const { return count(event::kind::packet); }

 private:
  void keep(event e) {
    if (!polling) ++outside_poll;
    if (look) look(e);
    events.push_back(std::move(e));
  }
};
static_assert(transport::packet_sink<recorder>);

/// An operation of a check. It stays in place until the fabric is gone or it has ended.
class tracked {
 public:
  explicit tracked(const recorder& at) : at_(at) {
    op.owner = this;
    op.on_done = [](operation& o) noexcept {
      auto& self = *static_cast<tracked*>(o.owner);
      ++self.ends;
      if (!self.at_.polling) ++self.ends_outside_poll;
      self.events_before_end = self.at_.events.size();
    };
  }
  tracked(const tracked&) = delete;
  tracked& operator=(const tracked&) = delete;

  operation op;
  int ends = 0;
  int ends_outside_poll = 0;
  std::size_t events_before_end = 0;  ///< events the poster had seen when it ended

 private:
  const recorder& at_;
};

}  // namespace verbena::contract
