#include "runtime/engine/wire.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace verbena::runtime;

TEST_CASE("the header's bytes are the documented ones", "[wire]") {
  const wire::header h{.what = wire::kind::rts,
                       .flags = 2,
                       .lane = 1,
                       .reserved = 0,
                       .context = {0x01020304},
                       .source = 5,
                       .label = 0x0a0b0c0d};
  const auto e = wire::encode(h);
  std::array<unsigned char, 16> bytes;
  std::memcpy(bytes.data(), &e, 16);
  CHECK(bytes == std::array<unsigned char, 16>{4, 2, 1, 0, 4, 3, 2, 1, 5, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a});
  CHECK(wire::encode(wire::decode(e)) == e);
}

TEST_CASE("a body that is cut short does not decode", "[wire]") {
  std::array<std::byte, 80> bytes{};
  std::span<const std::byte> payload(bytes.data(), sizeof(wire::rts_body) - 1);
  CHECK_FALSE(wire::take<wire::rts_body>(payload));
  CHECK(payload.size() == sizeof(wire::rts_body) - 1);
  wire::put(bytes.data(), wire::rts_body{.total = 77, .sender = {1, 2}, .key = {}, .method = 1});
  payload = bytes;
  const auto body = wire::take<wire::rts_body>(payload);
  REQUIRE(body);
  CHECK(body->total == 77);
  CHECK(body->sender == wire::handle{1, 2});
  CHECK(payload.size() == 80 - sizeof(wire::rts_body));
}
