#include "transport/verbs/wire.hpp"

namespace verbena::transport::verbs {

std::vector<std::byte> encode(const contact_head& head, std::span<const std::uint32_t> numbers) {
  std::vector<std::byte> bytes(sizeof head + numbers.size_bytes());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!numbers.empty()) std::memcpy(bytes.data() + sizeof head, numbers.data(), numbers.size_bytes());
  return bytes;
}

std::vector<std::byte> encode_absence(const std::string& why) {
  const contact_head head;
  std::vector<std::byte> bytes(sizeof head + why.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, why.data(), why.size());
  return bytes;
}

std::optional<contact> decode(std::span<const std::byte> bytes, std::uint32_t reader, std::uint32_t ranks) {
  const auto head = take<contact_head>(bytes);
  if (!head || head->magic != contact_head::right_magic) return std::nullopt;
  contact c;
  c.head = *head;
  if (head->ranks == 0) {
    c.why.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return c;
  }
  if (head->ranks != ranks || reader >= ranks || bytes.size() != std::size_t{ranks} * sizeof(std::uint32_t))
    return std::nullopt;
  std::memcpy(&c.number, bytes.data() + std::size_t{reader} * sizeof c.number, sizeof c.number);
  const bool sane = head->lease != 0 && head->lease < 1U << 20 && head->flags != 0 &&
                    head->flags < 1U << 20 && head->mtu >= 1 && head->mtu <= 5 &&
                    head->packet_bytes >= control_packet_bytes && head->start < 1U << 24 && c.number != 0 &&
                    (head->mailbox == 0 || head->identity != 0);
  if (!sane) return std::nullopt;
  return c;
}

std::optional<letter> decode_letter(std::span<const std::byte> bytes, std::uint64_t identity,
                                    std::uint32_t ranks) {
  if (bytes.size() != sizeof(letter)) return std::nullopt;
  const auto l = take<letter>(bytes);
  const bool sane = l->magic == letter::right_magic && l->to == identity && l->by != 0 && l->rank < ranks &&
                    l->what >= letter_kind::broken && l->what <= letter_kind::given_up &&
                    l->incarnation != 0 && l->start < 1U << 24 && l->number != 0;
  if (!sane) return std::nullopt;
  return l;
}

}  // namespace verbena::transport::verbs
