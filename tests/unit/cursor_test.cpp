// The cursor and the layouts it walks, against lists of addresses.
#include "runtime/engine/cursor.hpp"
#include "runtime/layout_access.hpp"
#include "tests/unit/random_layout.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>

using namespace verbena;
using runtime::cursor;
using runtime::layout_access;
using runtime::user_memory;
using tests::laid_out;
using tests::layout_kind;

namespace {

constexpr layout_kind kinds[] = {layout_kind::in_a_row, layout_kind::forwards, layout_kind::backwards,
                                 layout_kind::listed, layout_kind::overlapping};

}  // namespace

TEST_CASE("pieces of any size, from any byte on, are those of the list of addresses", "[cursor]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    const layout_kind kind = kinds[seed % std::size(kinds)];
    laid_out from = tests::random_layout(random, kind, random() % (seed % 3 == 0 ? 20 : 9000));
    INFO("seed " << seed << ", " << from.size() << " B");
    REQUIRE(from.form().bytes() == from.size());
    from.fill(seed);
    const std::vector<std::byte> message = from.message();
    const user_memory memory = layout_access::source("test", from.base(), from.form());
    for (int i = 0; i < 30; ++i) {
      const std::size_t at = random() % (from.size() + 1), bytes = random() % (from.size() - at + 1);
      std::vector<std::byte> piece(bytes);
      runtime::read_piece(memory, at, piece.data(), bytes);
      REQUIRE(std::equal(piece.begin(), piece.end(), message.begin() + static_cast<std::ptrdiff_t>(at)));
    }
    if (kind == layout_kind::overlapping) continue;
    laid_out to = from;  // the same layout
    laid_out expected = from;
    std::vector<std::byte> other(from.size());
    for (std::byte& b : other) b = static_cast<std::byte>(random());
    for (std::size_t i = 0; i < other.size(); ++i) expected.byte(i) = other[i];
    const user_memory room = layout_access::room("test", to.base(), to.form());
    for (std::size_t at = 0; at < other.size();) {
      const std::size_t bytes = std::min<std::size_t>(1 + random() % 700, other.size() - at);
      runtime::write_piece(room, at, other.data() + at, bytes);
      at += bytes;
    }
    REQUIRE(to.message() == other);
    REQUIRE(std::equal(to.base() - 32, to.base(), expected.base() - 32));  // the margin before it
    REQUIRE(to.message() == expected.message());
  }
}

TEST_CASE("a cursor gives runs as long as blocks, and ends where the message ends", "[cursor]") {
  std::byte memory[64];
  const layout form = layout::strided(3, 5, 16);
  const user_memory all = layout_access::source("test", memory, form);
  REQUIRE(all.form != nullptr);
  cursor c(*all.form, all.data, 2);
  auto run = c.next(100);
  CHECK(run.data() == memory + 2);
  CHECK(run.size() == 3);
  run = c.next(4);
  CHECK(run.data() == memory + 16);
  CHECK(run.size() == 4);
  CHECK(c.position() == 9);
  run = c.next(4);
  CHECK(run.data() == memory + 20);
  CHECK(run.size() == 1);
  CHECK(c.next(5).data() == memory + 32);
  CHECK(c.next(1).empty());
  CHECK(cursor(*all.form, all.data, 15).next(1).empty());
}

TEST_CASE("layouts that lie in a row are found out", "[cursor]") {
  std::byte memory[64];
  for (const layout& form : {layout::contiguous(24), layout::strided(1, 24, 99), layout::strided(3, 8, 8),
                             layout::indexed({{0, 8}, {4, 0}, {8, 16}})}) {
    const user_memory all = layout_access::source("test", memory, form);
    CHECK(all.form == nullptr);
    CHECK(all.data == memory);
    CHECK(all.bytes == 24);
  }
  CHECK(layout_access::source("test", memory, layout::indexed({{16, 8}})).data == memory + 16);
  for (const layout& form : {layout(), layout::strided(0, 8, 16), layout::strided(9, 0, 16),
                             layout::indexed(std::span<const layout::block>()), layout::indexed({{5, 0}})}) {
    CHECK(form.bytes() == 0);
    CHECK(layout_access::source("test", nullptr, form).bytes == 0);
  }
}

TEST_CASE("overlapping blocks are seen, neighbours are not taken for them", "[cursor]") {
  CHECK(layout::strided(2, 8, 7).overlapping());
  CHECK(layout::strided(2, 8, -7).overlapping());
  CHECK(layout::strided(2, 8, 0).overlapping());
  CHECK_FALSE(layout::strided(2, 8, -8).overlapping());
  CHECK_FALSE(layout::strided(2, 8, 9).overlapping());
  CHECK(layout::indexed({{0, 8}, {20, 8}, {7, 2}}).overlapping());
  CHECK(layout::indexed({{0, 100}, {20, 1}, {200, 1}}).overlapping());
  CHECK_FALSE(layout::indexed({{8, 8}, {0, 8}, {-8, 8}}).overlapping());
  std::byte memory[64];
  CHECK_THROWS_WITH(layout_access::room("recv", memory, layout::strided(2, 8, 7)),
                    "recv: blocks of the layout overlap; such a layout can only be sent from");
  CHECK_THROWS_WITH(layout_access::source("send", nullptr, layout::strided(2, 8, 9)),
                    "send: the buffer is a null pointer, the size 16 B");
}

TEST_CASE("layouts larger than memory are refused", "[cursor]") {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  constexpr std::ptrdiff_t far = std::numeric_limits<std::ptrdiff_t>::max();
  const auto refused = [](auto make) {
    try {
      make();
    } catch (const error& e) {
      return e.reason() == errc::invalid_argument;
    }
    return false;
  };
  CHECK(refused([] { layout::strided(most / 2, 3, 4); }));
  CHECK(refused([] { layout::strided(std::size_t{1} << 40, 8, std::ptrdiff_t{1} << 40); }));
  CHECK(refused([] { layout::strided(2, 16, far - 8); }));
  CHECK(refused([] { layout::strided(3, 1, std::numeric_limits<std::ptrdiff_t>::min()); }));
  CHECK(refused([] { layout::indexed({{far, 1}}); }));
  CHECK(refused([] { layout::indexed({{0, most}}); }));
  CHECK(refused([] { layout::indexed({{0, most / 2}, {0, most / 2}}); }));
  CHECK_FALSE(refused([] { layout::indexed({{-far, 1}, {far - 1, 1}}); }));
}
