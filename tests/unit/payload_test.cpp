#include "payload.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

using bench::message;
using bench::payload;
using Catch::Matchers::Contains;

TEST_CASE("a flipped byte is found wherever it lies, and named by size, rank and offset", "[payload]") {
  for (const std::uint64_t size : {1u, 7u, 8u, 9u, 64u, 1001u}) {
    payload bytes(size);
    const message sent{.size = size, .iteration = 3, .sender = 1, .slot = 5};
    bytes.fill(sent);
    REQUIRE_FALSE(bytes.wrong(sent, 0));
    for (std::uint64_t at = 0; at < size; ++at) {
      bytes.data()[at] ^= std::byte{0x10};
      const auto why = bytes.wrong(sent, 0);
      REQUIRE(why);
      CHECK_THAT(*why, Contains(fmt::format("rank 0: size {}: byte at offset {} is 0x", size, at)) &&
                           Contains("repetition 3, message 5 from rank 1"));
      bytes.data()[at] ^= std::byte{0x10};
    }
  }
}

TEST_CASE("the bytes of another repetition, sender, slot or size do not pass", "[payload]") {
  payload bytes(4096);
  const message sent{.size = 4096, .iteration = 1, .sender = 1, .slot = 1};
  bytes.fill(sent);
  for (const message& other : {message{.size = 4096, .iteration = 2, .sender = 1, .slot = 1},
                               message{.size = 4096, .iteration = 1, .sender = 0, .slot = 1},
                               message{.size = 4096, .iteration = 1, .sender = 1, .slot = 2},
                               message{.size = 2048, .iteration = 1, .sender = 1, .slot = 1}})
    CHECK(bytes.wrong(other, 0));
}

TEST_CASE("a byte written behind the end is seen", "[payload]") {
  payload bytes(100);
  const message sent{.size = 100};
  bytes.fill(sent);
  bytes.data()[100] = std::byte{1};
  CHECK_THAT(bytes.wrong(sent, 0).value_or(""), Contains("offset 100") && Contains("behind the end"));
}

TEST_CASE("a sum is right only if every rank's summand is in it once", "[payload]") {
  constexpr int ranks = 5;
  constexpr std::uint64_t bytes = 4000;
  payload part(bytes), sum(bytes);
  for (float& value : sum.floats(bytes)) value = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    part.fill_summands(bytes, 9, rank);
    for (std::size_t i = 0; i < bytes / 4; ++i) sum.floats(bytes)[i] += part.floats(bytes)[i];
  }
  CHECK_FALSE(sum.wrong_sum(bytes, 9, 2, ranks));
  CHECK(sum.wrong_sum(bytes, 10, 2, ranks));
  CHECK(sum.wrong_sum(bytes, 9, 2, ranks - 1));
  sum.floats(bytes)[777] -= part.floats(bytes)[777];
  CHECK_THAT(sum.wrong_sum(bytes, 9, 2, ranks).value_or(""),
             Contains("rank 2: size 4000: byte at offset 310") && Contains("element 777 is"));
}
