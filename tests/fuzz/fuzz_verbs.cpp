// What of verbs comes from outside as bytes: what a rank publishes, and letters about connections that broke. The first byte
// says which; what is believed must be sane.
#include "transport/verbs/wire.hpp"

#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

using namespace verbena::transport::verbs;

void demand(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  const std::uint32_t ranks = data[1] % 8 + 1U;
  if (data[0] % 2 == 0) {
    const auto read = decode(bytes, data[0] / 2 % 8U, ranks);
    if (!read || read->head.ranks == 0) return 0;
    demand(read->head.ranks == ranks && data[0] / 2 % 8U < ranks && read->number != 0);
    demand(read->head.lease != 0 && read->head.mtu >= 1 && read->head.mtu <= 5);
    demand(read->head.mailbox == 0 || read->head.identity != 0);
  } else {
    const auto read = decode_letter(bytes, data[0] / 2, ranks);
    if (!read) return 0;
    demand(bytes.size() == sizeof(letter) && read->to == data[0] / 2 && read->by != 0 && read->rank < ranks);
    demand(read->what >= letter_kind::broken && read->what <= letter_kind::given_up);
    demand(read->start < 1U << 24 && read->number != 0 && read->incarnation != 0);
  }
  return 0;
}
