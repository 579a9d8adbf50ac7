// Every fixed body of a packet, decoded from any bytes: it fails exactly when they are too few, takes nothing
// but its own, and what it took writes back to the same bytes.
#include "base/check.hpp"
#include "runtime/engine/wire.hpp"

#include <cstring>
#include <vector>

namespace {

using namespace verbena;
namespace wire = runtime::wire;

template <class Body>
void decode(std::span<const std::byte> bytes) {
  std::span<const std::byte> left = bytes;
  const auto body = wire::take<Body>(left);
  base::check(body.has_value() == (bytes.size() >= sizeof(Body)), "a body decodes exactly if it is whole");
  if (!body) {
    base::check(left.data() == bytes.data() && left.size() == bytes.size(), "a failure takes nothing");
    return;
  }
  base::check(left.data() == bytes.data() + sizeof(Body) && left.size() == bytes.size() - sizeof(Body),
              "a body takes its own bytes");
  std::vector<std::byte> again(sizeof(Body));
  base::check(wire::put(again.data(), *body) == again.data() + sizeof(Body), "a body writes its own bytes");
  base::check(std::memcmp(again.data(), bytes.data(), sizeof(Body)) == 0, "a body writes what it read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size: one byte too far is the sanitizer's.
  const std::vector<std::byte> exact(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  const std::span<const std::byte> bytes(exact);
  decode<wire::eager_body>(bytes);
  decode<wire::rts_body>(bytes);
  decode<wire::cts_body>(bytes);
  decode<wire::fin_body>(bytes);
  decode<wire::data_body>(bytes);
  decode<wire::one_sided_body>(bytes);
  decode<wire::handle>(bytes);
  if (size >= sizeof(transport::envelope)) {
    transport::envelope envelope;
    std::memcpy(&envelope, exact.data(), sizeof envelope);
    base::check(wire::encode(wire::decode(envelope)) == envelope, "a header writes what it read");
  }
  return 0;
}
