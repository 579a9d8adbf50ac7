// What two sides tell each other when a connection between them is made again: who is meant, which connection
// this is, and where each of them stands. It travels in whatever handshake the customer has, before the first
// packet of the new connection.
//
//   version u32 | incarnation u32 | session u64 | expected u32 | sent u32          24 bytes, little endian
#pragma once

#include "transport/session/header.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace verbena::transport::session {

struct resume_point {
  static constexpr std::uint32_t current_version = 1;

  std::uint32_t version = current_version;
  std::uint32_t incarnation = 0;  ///< of the new connection; grows with each
  std::uint64_t session = 0;      ///< the same on both sides for as long as both processes live
  std::uint32_t expected = 0;     ///< the next number its sender lacks
  std::uint32_t sent = 0;         ///< the last number its sender has given out
  friend bool operator==(const resume_point&, const resume_point&) = default;
};
static_assert(sizeof(resume_point) == 24 && std::is_trivially_copyable_v<resume_point>);

inline std::byte* put(std::byte* at, const resume_point& point) noexcept {
  std::memcpy(at, &point, sizeof point);
  return at + sizeof point;
}

/// Takes one off the front of `bytes`. Nothing, and `bytes` as it was: too few, another version, or no connection.
inline std::optional<resume_point> take_resume_point(std::span<const std::byte>& bytes) noexcept {
  resume_point point;
  if (bytes.size() < sizeof point) return {};
  std::memcpy(&point, bytes.data(), sizeof point);
  if (point.version != resume_point::current_version || point.incarnation == 0) return {};
  bytes = bytes.subspan(sizeof point);
  return point;
}

}  // namespace verbena::transport::session
