// A rank's mailbox: a queue pair for datagrams, by which ranks reach each other where they have no connection. Letters may
// be lost, doubled and late; whoever writes one writes it again until it is answered. It has a completion queue of its own,
// which is looked at rarely. It must not know what letters say.
#pragma once

#include "base/clock.hpp"
#include "transport/verbs/device.hpp"
#include "transport/verbs/memory.hpp"
#include "transport/verbs/objects.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace verbena::transport::verbs {

class mailbox {
 public:
  static constexpr std::size_t letter_bytes = 128;  ///< the longest letter

  /// Empty (operator bool) if the device has none. All it is made of outlives it. `peers`: who may all write at once.
  mailbox(const device_choice& device, ibv_pd* domain, ibv_comp_channel* channel, std::uint32_t peers);
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  std::uint32_t number() const noexcept { return handle_->qp_num; }
  std::uint32_t key() const noexcept { return key_; }

  /// False: there was no room for it. With the port down it is lost.
  bool send(ibv_ah* way, std::uint32_t number, std::uint32_t key, std::span<const std::byte> text) noexcept;

  /// Hands out what has come: `take(bytes)`. Bytes are valid during the call.
  template <class Take>
  std::size_t read(base::nanoseconds now, Take&& take) {
    look();
    std::size_t count = 0;
    for (const arrived& a : arrived_) {
      take(std::span<const std::byte>(slots_.at(a.slot) + head_bytes, a.bytes));
      post_receive(a.slot);
      ++count;
    }
    arrived_.clear();
    if (failed_ && now >= restart_at_) {
      restart_at_ = now + between_restarts;
      restart();
    }
    return count;
  }

  /// The next letter makes an event on the channel. False: one is there.
  bool arm() noexcept;
  /// It has to be started anew, which `read` does now and then.
  bool has_failed() const noexcept { return failed_ && !silent_; }
  /// It neither sends nor receives any more; for tests.
  void silence() noexcept;

 private:
  static constexpr std::size_t head_bytes =
      40;  // in front of each datagram the device writes where it came from
  static constexpr base::nanoseconds between_restarts = 50 * base::millisecond;

  struct arrived {
    std::uint32_t slot;
    std::uint32_t bytes;
  };

  void look();
  bool start() noexcept;
  void restart() noexcept;
  void post_receive(std::uint32_t slot) noexcept;
  std::uint64_t name(std::uint32_t slot) const noexcept { return std::uint64_t{life_} << 32 | slot; }

  const device_choice& device_;
  std::uint32_t key_ = 0;
  std::uint32_t receives_ = 0, sends_ = 0;  ///< slots
  base::nanoseconds restart_at_ = 0;
  std::uint32_t life_ = 0;  ///< how often it was started: completions of an older life mean nothing
  bool failed_ = false;
  bool armed_ = false;
  bool silent_ = false;
  completion_queue_handle completions_;
  slot_pool slots_;  ///< first those for what comes in
  std::vector<std::uint32_t> free_;
  std::vector<arrived> arrived_;
  queue_pair_handle handle_;  ///< goes first
};

}  // namespace verbena::transport::verbs
