#include "transport/tcp/wire.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::transport::tcp {
namespace {

struct contact_head {
  static constexpr std::uint32_t right_magic = 0x31637456U;  // "Vtc1"
  std::uint32_t magic = right_magic;
  std::uint16_t port = 0;
  std::uint16_t addresses = 0;
  instance self{};
  host_mark host{};
};
static_assert(sizeof(contact_head) == 48 && std::is_trivially_copyable_v<contact_head>);

bool possible(const frame_head& head, std::size_t there) noexcept {
  switch (head.kind) {
    case frame_kind::packet:
      if (head.bytes < sizeof(packet_head) || head.bytes > longest_frame) return false;
      return there < sizeof head || head.session.sequence != 0;
    case frame_kind::answer:
    case frame_kind::bye:
      if (head.bytes != sizeof head) return false;
      return there < sizeof head || head.session.sequence == 0;
  }
  return false;
}

}  // namespace

reading take_frame(std::span<const std::byte>& bytes, frame& into) noexcept {
  constexpr std::size_t length_and_kind = 8;
  frame_head head;
  if (bytes.size() < length_and_kind) return reading::partial;
  std::memcpy(&head, bytes.data(), std::min(bytes.size(), sizeof head));
  if (!possible(head, bytes.size())) return reading::malformed;
  if (bytes.size() < head.bytes) return reading::partial;
  into = {head.kind, head.session, {}, {}};
  if (head.kind == frame_kind::packet) {
    std::memcpy(&into.head, bytes.data() + sizeof head, sizeof into.head);
    into.payload = bytes.subspan(sizeof(packet_head), head.bytes - sizeof(packet_head));
  }
  bytes = bytes.subspan(head.bytes);
  return reading::whole;
}

std::vector<std::byte> encode(const contact& c) {
  contact_head head;
  head.port = c.port;
  head.addresses = static_cast<std::uint16_t>(std::min(c.addresses.size(), most_addresses));
  head.self = c.self;
  head.host = c.host;
  const std::size_t behind = c.port == 0 ? c.why.size() : head.addresses * sizeof(address);
  std::vector<std::byte> bytes(sizeof head + behind);
  std::memcpy(bytes.data(), &head, sizeof head);
  const void* const from = c.port == 0 ? static_cast<const void*>(c.why.data()) : c.addresses.data();
  if (behind != 0) std::memcpy(bytes.data() + sizeof head, from, behind);
  return bytes;
}

std::optional<contact> decode_contact(std::span<const std::byte> bytes) {
  contact_head head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  if (head.magic != contact_head::right_magic) return std::nullopt;
  contact c;
  c.self = head.self;
  c.host = head.host;
  c.port = head.port;
  if (head.port == 0) {
    constexpr std::size_t longest_text = 1000;
    c.why.assign(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), longest_text));
    return c;
  }
  if (head.addresses == 0 || head.addresses > most_addresses ||
      bytes.size() != head.addresses * sizeof(address))
    return std::nullopt;
  c.addresses.resize(head.addresses);
  std::memcpy(c.addresses.data(), bytes.data(), bytes.size());
  for (const address& a : c.addresses)
    if (!sane(a)) return std::nullopt;
  return c;
}

}  // namespace verbena::transport::tcp
