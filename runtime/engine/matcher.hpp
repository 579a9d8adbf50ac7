// Which receive gets which message: MPI's matching rules (MPI 4.0, section 3.5) as a pure data structure. Receives and
// messages match by (context, source, tag); a receive may leave source, tag or both open. Among several candidates the
// oldest wins, on both sides. Every call is O(1) in the number of receives and messages waiting.
//
// It owns nothing: a posted_receive and an unexpected_message are embedded in what the engine keeps, stay in place while
// they are inside, and come out by matching or by remove. It must not know packets, buffers or protocols.
#pragma once

#include "base/keyed_fifo.hpp"

#include <verbena/types.hpp>

#include <cstdint>

namespace verbena::runtime {

/// What messages are matched by. `context` carries the collective bit in its top bit.
struct match_key {
  std::uint32_t context = 0;
  rank source{};
  tag label{};
};

struct posted_receive {
  base::keyed_link link;
  match_key want;
  std::uint64_t order = 0;  ///< given by the matcher: smaller is older
  void* holder = nullptr;   ///< what it is embedded in; the user's
};

struct unexpected_message {
  base::keyed_link exact, by_source, by_tag, by_context;
  match_key is;
  std::uint64_t order = 0;  ///< given by the matcher: smaller is older
  void* holder = nullptr;   ///< what it is embedded in; the user's
};

class matcher {
 public:
  bool has_posted() const noexcept { return !posted_.empty(); }
  bool has_unexpected() const noexcept { return !exact_.empty(); }
  std::size_t unexpected_count() const noexcept { return exact_.size(); }

  /// Takes out the oldest message that the receive matches, or null; the receive is not posted by it.
  unexpected_message* take_unexpected(const match_key& want) noexcept;
  /// The same without taking it out.
  unexpected_message* peek_unexpected(const match_key& want) noexcept;
  void post(posted_receive& receive, const match_key& want);

  /// Takes out the oldest receive that the message matches, or null; the message is not added by it.
  posted_receive* take_posted(const match_key& is) noexcept;
  void add_unexpected(unexpected_message& message, const match_key& is);

  void remove(posted_receive& receive) noexcept;
  void remove(unexpected_message& message) noexcept;

  /// visit(posted_receive&) for each; the visitor may remove the one it is given.
  template <class Visit>
  void for_each_posted(Visit&& visit) {
    posted_.for_each([&](void* owner) { visit(*static_cast<posted_receive*>(owner)); });
  }
  template <class Visit>
  void for_each_unexpected(Visit&& visit) {
    exact_.for_each([&](void* owner) { visit(*static_cast<unexpected_message*>(owner)); });
  }

 private:
  base::keyed_fifo posted_;  // key holds -1 where the receive leaves something open
  std::uint64_t next_order_ = 0;
  std::uint64_t next_message_ = 0;
  // How many posted receives leave open: nothing, the tag, the source, both. Spares look-ups that cannot hit.
  std::uint32_t shapes_[4] = {};
  base::keyed_fifo exact_, by_source_, by_tag_, by_context_;
};

}  // namespace verbena::runtime
