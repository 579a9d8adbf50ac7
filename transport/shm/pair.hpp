// All a rank knows about one peer of its node: both rings, and how to get the other's attention. Private
// memory, made on first contact; the first two lines are what the warm path touches. The table finds it by
// job rank.
#pragma once

#include "transport/fabric.hpp"
#include "transport/shm/cross_memory.hpp"
#include "transport/shm/rings.hpp"

#include <array>
#include <memory>
#include <vector>

namespace verbena::transport::shm {

/// A line that never becomes valid: what a receiver looks at while the peer has not made its ring.
inline constexpr ring_line no_line{};
inline constexpr std::uint32_t never_expected = 2;  // sequences are odd, fresh memory is 0

enum class health : std::uint8_t {
  well,
  left,     ///< the launcher has seen it leave in good order; its ring is being drained
  failed,   ///< the launcher has seen it die; its ring is being drained
  buried,   ///< on_peer_down was reported
  corrupt,  ///< wrote a line that cannot be; reported as malformed
};

struct alignas(line_bytes) pair_state {
  ring_sender out;
  /// Of the pair's slot in the receiver's row: 1, the receiver polls this ring by itself.
  const std::atomic<std::uint32_t>* out_hot = nullptr;

  alignas(line_bytes) ring_receiver in;
  transport::peer who;
  bool hot = false;        ///< in the list of rings that every poll looks at
  bool lingering = false;  ///< was demoted lately; still looked at now and then

  alignas(line_bytes) base::doorbell* bell = nullptr;  ///< the peer's
  std::atomic<std::uint64_t>* cold_word = nullptr;     ///< the peer's word with this rank's bit
  std::uint64_t cold_bit = 0;
  pair_slot* in_slot = nullptr;
  pair_slot* out_slot = nullptr;
  base::nanoseconds linger_until = 0;
  std::uint32_t local_index = 0;
  std::uint32_t cold_finds = 0;   ///< since it was last hot
  std::uint32_t rounds = 0;       ///< times the sender asked how far the receiver is
  std::uint32_t full_events = 0;  ///< times the ring was full, once per progress of the receiver
  bool found_full = false;        ///< and the receiver has not read on since
  health state = health::well;
  errc end = errc::success;  ///< why it is buried
  bool in_grown = false;
  bool out_grown = false;
  trial_result trial;
  int pid = 0;  ///< of a peer whose memory was proven reachable

  pair_state() noexcept {
    in.at = &no_line;
    in.expect = never_expected;
  }
  bool reachable() const noexcept { return state == health::well; }
};

/// Two levels, the second made on first contact: a fresh fabric in a job of thousands stays small.
class pair_table {
 public:
  explicit pair_table(std::uint32_t job_size) : leaves_((job_size + per_leaf - 1) / per_leaf) {}

  pair_state* find(peer who) const noexcept {
    const auto& leaf = leaves_[who.index / per_leaf];
    if (leaf == nullptr) [[unlikely]]
      return nullptr;
    return &(*leaf)[who.index % per_leaf];
  }
  pair_state& at(peer who) {
    auto& leaf = leaves_[who.index / per_leaf];
    if (leaf == nullptr) leaf = std::make_unique<leaf_type>();
    return (*leaf)[who.index % per_leaf];
  }

 private:
  static constexpr std::uint32_t per_leaf = 8;
  using leaf_type = std::array<pair_state, per_leaf>;
  std::vector<std::unique_ptr<leaf_type>> leaves_;
};

}  // namespace verbena::transport::shm
