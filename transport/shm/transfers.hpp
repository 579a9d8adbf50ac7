// Large messages copied by both ends (layout.hpp, `transfer`): this rank's descriptors as sender, and what it
// is receiving. Chunks are claimed from the two ends of the message by compare-exchange, the receiver reads
// from the front, the sender writes from the back while it happens to be in progress; each accounts in
// `finished` what it claimed, copied or (after a failure) given up. So finished == bytes always comes while
// both live, and then nobody touches the buffers any more.
//
// Must not know rings; it rings doorbells and completes operations.
#pragma once

#include "transport/shm/pair.hpp"

#include <cstdint>
#include <vector>

namespace verbena::transport::shm {

class transfers {
 public:
  transfers(std::byte* base, const places& where, std::uint32_t local_index);

  post_result offer(pair_state& to, buffer local, remote_key& ticket, operation& op);
  post_result accept(pair_state& from, buffer local, const remote_key& ticket, operation& op);
  bool withdraw(const remote_key& ticket) noexcept;

  bool busy() const noexcept { return !outgoing_.empty() || !incoming_.empty(); }
  /// Completes what is done and copies at most one chunk each way. Returns the steps made.
  std::size_t advance() noexcept {
    return advance(incoming_, side::receiver, incoming_cursor_) +
           advance(outgoing_, side::sender, outgoing_cursor_);
  }
  /// True if `advance` would find something to do; false: the other ends will ring.
  bool work_waits() const noexcept;
  /// Ends everything shared with a peer that is gone: what is whole well, the rest with `why`. A peer that wrote
  /// nonsense (malformed) may still touch memory here, others do not.
  std::size_t abandon(const pair_state& peer, errc why) noexcept {
    return abandon(incoming_, peer, side::receiver, why) + abandon(outgoing_, peer, side::sender, why);
  }

 private:
  enum class side { receiver, sender };  ///< copies from the front, from the back
  struct part {
    transfer* shared;
    operation* op;
    pair_state* other;
    std::byte* data;
    std::uint64_t bytes;  ///< of the message; private copies, for the shared words are the peer's too
    std::uint64_t source_address;  ///< receiver only
    std::uint32_t chunk_bytes;
  };
  using part_list = std::vector<part>;
  struct chunk {
    std::uint64_t offset;
    std::uint64_t bytes;  ///< 0: none left
  };

  static chunk claim(const part& p, side mine) noexcept;
  static bool chunks_left(const part& p) noexcept;
  static bool can_copy(const part& p, side mine) noexcept;
  static void account(const part& p, std::uint64_t bytes, int error) noexcept;
  bool copy_chunk(const part& p, side mine) noexcept;
  std::size_t advance(part_list& list, side mine, std::size_t& cursor) noexcept;
  std::size_t abandon(part_list& list, const pair_state& peer, side mine, errc why) noexcept;
  transfer* take_descriptor();

  std::byte* base_;
  const places& where_;
  std::uint32_t local_index_;
  std::uint32_t never_used_ = 0;  ///< descriptors from this slot on are fresh
  std::vector<transfer*>
      closing_;         ///< done here; free again once the receiver has set them idle, oldest first
  part_list outgoing_;  ///< in the order offered
  part_list incoming_;  ///< in the order accepted
  std::size_t outgoing_cursor_ = 0;
  std::size_t incoming_cursor_ = 0;
};

}  // namespace verbena::transport::shm
