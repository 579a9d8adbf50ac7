// A registration that a user or the engine holds, and the few words that verbs_fabric shares with what is behind it. Needs
// nothing of libibverbs, so that whoever sees the fabric does not.
#pragma once

#include "transport/fabric.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace verbena::transport {
struct region_entry;
}

namespace verbena::transport::verbs {

class registrations;

/// Move-only registration, as the contract wants it. The fabric outlives it.
class region {
 public:
  region() = default;
  region(registrations& of, region_entry* entry, bool kept, const remote_key& key) noexcept
      : of_(&of), entry_(entry), kept_(kept), key_(key) {}
  region(region&& other) noexcept
      : of_(std::exchange(other.of_, nullptr)),
        entry_(std::exchange(other.entry_, nullptr)),
        kept_(other.kept_),
        key_(other.key_) {}
  region& operator=(region&& other) noexcept {
    region old(std::move(*this));
    of_ = std::exchange(other.of_, nullptr);
    entry_ = std::exchange(other.entry_, nullptr);
    kept_ = other.kept_;
    key_ = other.key_;
    return *this;
  }
  ~region() {
    if (entry_ != nullptr) deregister();
  }

  remote_key key() const noexcept { return key_; }
  explicit operator bool() const noexcept { return of_ != nullptr; }

 private:
  void deregister() noexcept;

  registrations* of_ = nullptr;
  region_entry* entry_ = nullptr;  ///< null: of no bytes
  bool kept_ = false;
  remote_key key_;
};

/// put_apart: packets posted behind it may arrive before it is visible.
enum class access_kind : std::uint8_t { put, put_apart, put_with_flag, get, fetch_add, compare_swap };

/// What poll has to report.
struct arrival {
  enum class kind : std::uint8_t { packet, flag, down };
  kind what = kind::packet;
  peer from;
  envelope head;
  std::span<const std::byte> payload;  ///< in a slot, until it is released
  std::uint64_t word = 0;
  errc why = errc::success;
};

}  // namespace verbena::transport::verbs
