// The 8 bytes of session in front of every packet that leaves the node, as bytes and as numbers: how they are
// written, read and compared. Numbers are serial: 32 bits that wrap, compared by their distance. It must not
// know who keeps what.
//
//   packet         sequence | acknowledged | envelope | payload
//   bare answer    newest   | acknowledged                         8 bytes and nothing behind them
//
// A bare answer takes no number. Its first word is the newest number that has arrived; if that is not
// `acknowledged`, what lies between is missing.
#pragma once

#include "transport/packet.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace verbena::transport::session {

static_assert(std::endian::native == std::endian::little,
              "big-endian hosts need byte swaps in this file and resume.hpp");

/// How far `to` lies ahead of `from`; negative: behind.
constexpr std::int32_t distance(std::uint32_t from, std::uint32_t to) noexcept {
  return static_cast<std::int32_t>(to - from);
}

inline std::byte* put(std::byte* at, session_header head) noexcept {
  std::memcpy(at, &head, sizeof head);
  return at + sizeof head;
}

/// Takes the header off the front of `bytes`; nothing, and `bytes` as it was, if there are too few.
inline std::optional<session_header> take(std::span<const std::byte>& bytes) noexcept {
  session_header head;
  if (bytes.size() < sizeof head) return {};
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  return head;
}

}  // namespace verbena::transport::session
