// The 8 bytes of session in front of every packet that leaves the node, as bytes and as numbers: how they are
// written, read and compared. Numbers are serial: 32 bits that wrap, compared by their distance. It must not
// know who keeps what.
//
//   packet         sequence | acknowledged | envelope | payload
//   no packet      0        | acknowledged | what the fabric has to say
//   bare answer    0        | acknowledged | newest                         12 bytes, over links that lose
//
// Numbers run from 1 to 2^32 - 1, then from 1 again; 0 is none. (An acknowledgement of 0 is one of the number
// before 1.) `newest` is the newest number that has arrived: what lies behind `acknowledged` and before it is
// missing.
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

constexpr std::uint32_t next(std::uint32_t number) noexcept {
  return number == UINT32_MAX ? 1 : number + 1;
}
constexpr std::uint32_t before(std::uint32_t number) noexcept {
  return number == 1 ? UINT32_MAX : number - 1;
}

/// How far `to` lies ahead of `from`; negative: behind. One too much where 0 lies between.
constexpr std::int32_t distance(std::uint32_t from, std::uint32_t to) noexcept {
  return static_cast<std::int32_t>(to - from);
}

struct bare_answer {
  std::uint32_t acknowledged = 0;
  std::uint32_t newest = 0;  ///< the same, if nothing is missing
};

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

inline constexpr std::size_t bare_answer_bytes = sizeof(session_header) + sizeof(std::uint32_t);

inline std::byte* put(std::byte* at, bare_answer answer) noexcept {
  at = put(at, session_header{0, answer.acknowledged});
  std::memcpy(at, &answer.newest, sizeof answer.newest);
  return at + sizeof answer.newest;
}

/// Nothing, and `bytes` as it was: too few, or they begin with a packet.
inline std::optional<bare_answer> take_answer(std::span<const std::byte>& bytes) noexcept {
  std::span<const std::byte> left = bytes;
  const std::optional<session_header> head = take(left);
  bare_answer answer;
  if (!head || head->sequence != 0 || left.size() < sizeof answer.newest) return {};
  answer.acknowledged = head->acknowledged;
  std::memcpy(&answer.newest, left.data(), sizeof answer.newest);
  bytes = left.subspan(sizeof answer.newest);
  return answer;
}

}  // namespace verbena::transport::session
