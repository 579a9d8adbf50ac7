// One reliable connection's half: made, connected, stopped. What is posted on it is counted here, so that completions
// that come for some of the requests only tell of all. It must not know what is sent.
#pragma once

#include "base/clock.hpp"
#include "transport/verbs/device.hpp"
#include "transport/verbs/objects.hpp"
#include "transport/verbs/wire.hpp"

#include <cstdint>

namespace verbena::transport::verbs {

/// Tries of a request, and how long each waits: about two seconds together. Seven tries would mean for ever to
/// Soft-RoCE, for a peer without a posted receive to every device.
inline constexpr std::uint8_t retry_count = 6;
inline constexpr std::uint8_t receiver_not_ready_retries = 6;
inline constexpr std::uint8_t answer_timeout = 16;  ///< 4.096 us * 2^16
inline constexpr base::nanoseconds all_tries =
    (retry_count + 1) * (base::nanoseconds{4096} << answer_timeout);

struct queue_pair_wishes {
  std::uint32_t sends = 1;
  std::uint32_t inline_bytes = 0;
  unsigned access = 0;  ///< of the peer to our memory: IBV_ACCESS_REMOTE_*
};

/// The way from this port to a contact's.
ibv_ah_attr way_to(const device_choice& device, const contact_head& contact) noexcept;

class queue_pair {
 public:
  queue_pair() = default;
  /// In state INIT; empty (operator bool) if the device refuses.
  queue_pair(const device_choice& device, ibv_pd* domain, ibv_cq* completions, ibv_srq* receives,
             const queue_pair_wishes& wishes);

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  ibv_qp* get() const noexcept { return handle_.get(); }
  std::uint32_t number() const noexcept { return handle_->qp_num; }
  std::uint32_t inline_bytes() const noexcept { return inline_bytes_; }

  /// INIT to RTR: takes what comes from queue pair `number` of the contact, from packet `start` on.
  bool receive_from(const device_choice& device, const contact_head& contact, std::uint32_t number,
                    std::uint32_t start) noexcept;
  /// RTR to RTS.
  bool begin_sending(const device_choice& device, const contact_head& contact, std::uint32_t start) noexcept;
  /// A packet sequence number to start with when it is used again: far ahead of all that it has used, so that what is late
  /// of its old connection counts as heard long ago. To be asked before `restart` or `silence`.
  std::uint32_t fresh_start() noexcept;
  /// What is posted ends with a flush completion; nothing comes in any more.
  void stop() noexcept;
  /// Back to INIT: all that was posted is forgotten, without completions.
  bool restart() noexcept;
  /// The device lets go of it: nothing comes in from now on, not even what was half done.
  void silence() noexcept;
  void destroy() noexcept { handle_.reset(); }

  // Requests in the order of their posting, numbered from 0, wrapping.
  std::uint32_t posted = 0;
  std::uint32_t retired = 0;
  std::uint32_t outstanding() const noexcept { return posted - retired; }

 private:
  bool initialise() noexcept;

  queue_pair_handle handle_;
  std::uint32_t inline_bytes_ = 0;
  unsigned access_ = 0;
  std::uint8_t port_ = 0;
  std::uint32_t start_ = 0;  ///< the last one that it sent from, or was to send from
  bool sends_ = false;       ///< it began to, since it was started
};

}  // namespace verbena::transport::verbs
