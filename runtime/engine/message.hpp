// One message under way at one side: what the engine remembers between the call and the completion. Messages live in
// the engine's pool; a handle (slot, generation) names one on the wire, so that a late or forged answer finds nothing.
//
//   a send      eager -> done                              (not stored at all if the fabric takes it at once)
//               eager -> unacknowledged -> done             (synchronous: the receiver says when it is matched)
//               eager -> envelope -> awaiting -> [cts] streaming -> done    (over budget: the data stays here)
//               rts -> awaiting -> [cts] put | streaming -> fin -> done
//               rts -> awaiting -> done                     (together: the fabric completes it)
//   kept sends  packed -> gone     (blocking sends that have returned: copies in a row, nobody's operation)
//   a receive   posted -> done                              (eager)
//               posted -> starting -> cts -> receiving -> done
//               posted -> starting -> receiving -> done     (together)
//
// User memory that does not lie in a row (`form`) is read and written through a cursor, into packets and out of them:
// its large messages are streams, also those a sender has announced otherwise.
//               posted -> starting -> refuse -> done        (truncation: a FIN with the error, no data moves)
#pragma once

#include "runtime/engine/cursor.hpp"
#include "runtime/engine/matcher.hpp"
#include "runtime/engine/wire.hpp"
#include "transport/operation.hpp"
#include "transport/routed_fabric.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace verbena::runtime {

using transport::operation;
using transport::outcome;

enum class step : std::uint8_t {
  idle,
  eager,      ///< send: whole or next piece waits for room
  envelope,   ///< send: over budget; the envelope waits for room
  packed,     ///< copies of small messages wait for room
  unacknowledged,  ///< synchronous send: all is sent; the receiver's turn
  ack,        ///< the answer to a synchronous message waits for room
  rts,        ///< send: the announcement waits for room
  awaiting,   ///< send: announced; the receiver's turn
  put,        ///< send: cleared; the put waits for room
  putting,    ///< send: the put is under way
  fin,        ///< send: the data is in place, the word about it waits for room
  streaming,  ///< send: pieces wait for room
  posted,     ///< receive: in the matcher
  starting,   ///< receive: matched an RTS inside poll; goes on after it
  cts,        ///< receive: the clearance waits for room
  refuse,     ///< receive: the refusal waits for room
  receiving,  ///< receive: data is coming
  leave,      ///< the word that this rank leaves waits for room
  one_sided,  ///< access (one_sided.cpp): waits for room in the fabric
  native,     ///< access: the fabric has it
  asking,     ///< access by packets: the next piece waits for room
  asked,      ///< access by packets: the target's turn
  replying,   ///< access of the peer: the next piece of the reply waits for room
  answer,     ///< neither: a word to the peer waits for room (contexts.cpp)
};

struct engine_peer;

struct message : base::list_link {
  operation* op = nullptr;  ///< the caller's
  std::byte* data = nullptr;
  const shape* form = nullptr;  ///< the caller's, of the memory at `data`; null: it lies in a row
  std::size_t size = 0;   ///< send: bytes of the message; receive: room in the buffer
  std::size_t total = 0;  ///< receive: bytes of the message
  std::size_t moved = 0;  ///< bytes done so far, in order (eager pieces, streams)
  engine_peer* with = nullptr;  ///< null: a receive from any source, not matched yet
  wire::header head;            ///< send: as it goes out; receive: as it came in
  step at = step::idle;
  transport::bulk_method method = transport::bulk_method::stream;
  bool acknowledged = false;       ///< synchronous send: matched, although not all is sent yet
  bool refused = false;            ///< receive: the sender ignored its budget, and part of the data was not kept
  wire::handle remote;             ///< the other side's message
  transport::remote_key key;       ///< where to put (send); the ticket (together)
  transport::routed_fabric::region region;
  wire::one_sided_body call;       ///< of an access, or of the reply to one
  operation moving;                ///< the fabric's part of the work
  posted_receive posted;

  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  bool live = false;
  user_memory memory() const noexcept { return {data, size, form}; }
  wire::handle self() const noexcept { return {slot, generation}; }
};

/// A message that arrived before its receive, eager data included.
struct parcel {
  unexpected_message entry;
  engine_peer* from = nullptr;
  wire::header head;
  bool announced = false;  ///< the data is still with the sender
  bool refused = false;    ///< its sender ignored the budget: no data was kept
  wire::rts_body rts;
  std::byte* data = nullptr;
  std::size_t total = 0;
  std::size_t arrived = 0;
  std::uint64_t charge = 0;  ///< against the sender's budget
  wire::handle waits;        ///< of a synchronous sender, who wants to hear of the match
  bool synchronous() const noexcept { return !announced && (head.flags & wire::flag_bits::synchronous) != 0; }
  parcel* next_free = nullptr;
};

/// Pool of messages with stable addresses; a slot's generation grows at every release.
class message_pool {
 public:
  message& take();
  void release(message& m) noexcept;
  /// The live message a handle names, or null.
  message* find(wire::handle h) noexcept;
  std::size_t live() const noexcept { return live_; }
  template <class Visit>
  void for_each_live(Visit&& visit) {
    for (std::size_t i = 0; i < all_.size(); ++i)  // by index: the visitor may take new ones
      if (all_[i].live) visit(all_[i]);
  }

 private:
  std::deque<message> all_;
  std::vector<message*> free_;
  std::size_t live_ = 0;
};

class parcel_pool {
 public:
  parcel& take();
  void release(parcel& p) noexcept;

 private:
  std::deque<parcel> all_;
  parcel* free_ = nullptr;
};

}  // namespace verbena::runtime
