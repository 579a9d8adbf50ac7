// What of verbs needs no device: what ranks publish, keys, and the words for failures.
#include "transport/verbs/device_events.hpp"
#include "transport/verbs/memory.hpp"
#include "transport/verbs/status.hpp"
#include "transport/verbs/wire.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace verbena;
using namespace verbena::transport;
using namespace verbena::transport::verbs;

namespace {

contact_head some_head() {
  contact_head head;
  head.mtu = 3;
  head.start = 0xabcdef;
  head.lease = 64;
  head.flags = 16;
  head.packet_bytes = 8192;
  head.reads = 16;
  head.ranks = 3;
  head.mailbox = 5;
  head.identity = 1;
  return head;
}

}  // namespace

TEST_CASE("a contact gives each reader its own number", "[verbs]") {
  const std::uint32_t numbers[] = {17, 0, 99};
  const auto bytes = encode(some_head(), numbers);
  CHECK(decode(bytes, 0, 3)->number == 17);
  CHECK(decode(bytes, 2, 3)->number == 99);
  CHECK(decode(bytes, 2, 3)->head.start == 0xabcdef);
  CHECK_FALSE(decode(bytes, 1, 3));  // its own
  CHECK_FALSE(decode(bytes, 3, 3));
  CHECK_FALSE(decode(bytes, 0, 4));
  CHECK_FALSE(decode(bytes, 0, 2));
}

TEST_CASE("a contact that is cut or damaged is none, or a sane one", "[verbs]") {
  const std::uint32_t numbers[] = {17, 0, 99};
  const auto whole = encode(some_head(), numbers);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(decode(std::span(whole).first(size), 0, 3));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto read = decode(bytes, 0, 3);
    if (bit < 32) CHECK_FALSE(read);  // the mark
    if (!read || !read->why.empty()) continue;
    CHECK(read->number != 0);
    CHECK((read->head.mailbox == 0 || read->head.identity != 0));
    CHECK((read->head.lease != 0 && read->head.flags != 0 && read->head.mtu >= 1 && read->head.mtu <= 5));
  }
}

TEST_CASE("a letter is believed only if it is whole, and for whom it is meant", "[verbs]") {
  letter right;
  right.what = letter_kind::listens;
  right.to = 77;
  right.by = 78;
  right.rank = 2;
  right.incarnation = 1;
  right.number = 17;
  right.start = 0xabcdef;
  const auto read = [](const letter& l, std::uint64_t by = 77, std::uint32_t ranks = 3) {
    return decode_letter(std::as_bytes(std::span(&l, 1)), by, ranks);
  };
  REQUIRE(read(right));
  CHECK(read(right)->start == 0xabcdef);
  CHECK_FALSE(read(right, 76));
  CHECK_FALSE(read(right, 77, 2));
  const auto whole = std::as_bytes(std::span(&right, 1));
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(decode_letter(whole.first(size), 77, 3));
  const auto wrong = [&](auto&& damage) {
    letter l = right;
    damage(l);
    return !read(l);
  };
  CHECK(wrong([](letter& l) { l.magic ^= 1; }));
  CHECK(wrong([](letter& l) { l.what = letter_kind{}; }));
  CHECK(wrong([](letter& l) { l.what = static_cast<letter_kind>(5); }));
  CHECK(wrong([](letter& l) { l.by = 0; }));
  CHECK(wrong([](letter& l) { l.incarnation = 0; }));
  CHECK(wrong([](letter& l) { l.number = 0; }));
  CHECK(wrong([](letter& l) { l.start = 1U << 24; }));
}

TEST_CASE("a rank without a device publishes why", "[verbs]") {
  const auto read = decode(encode_absence("no card"), 0, 3);
  REQUIRE(read);
  CHECK(read->head.ranks == 0);
  CHECK(read->why == "no card");
}

TEST_CASE("every status has words of its own", "[verbs]") {
  std::set<std::string_view> names;
  for (int s = 0; s <= IBV_WC_GENERAL_ERR; ++s) {
    const status_row& row = row_of(static_cast<ibv_wc_status>(s));
    CAPTURE(s, row.name);
    CHECK(row.status == s);
    CHECK(names.insert(row.name).second);
    CHECK_FALSE(row.meaning.empty());
    CHECK_FALSE(row.look_at.empty());
    CHECK((row.code == errc::success) == (s == 0));
  }
  CHECK(row_of(IBV_WC_TM_RNDV_INCOMPLETE).code == errc::link_down);
}

TEST_CASE("every event has words of its own", "[verbs]") {
  std::set<std::string_view> names;
  for (int e = 0; e <= IBV_EVENT_WQ_FATAL; ++e) {
    const event_row& row = row_of(static_cast<ibv_event_type>(e));
    CAPTURE(e, row.name);
    CHECK(row.what == e);
    CHECK(names.insert(row.name).second);
    CHECK_FALSE(row.meaning.empty());
  }
  CHECK(row_of(static_cast<ibv_event_type>(31)).follows == consequence::none);
  for (const ibv_event_type e : {IBV_EVENT_DEVICE_FATAL, IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_ERR})
    CHECK(row_of(e).follows == consequence::all);
  CHECK(row_of(IBV_EVENT_PORT_ERR).follows == consequence::port_down);
  CHECK(row_of(IBV_EVENT_PORT_ACTIVE).follows == consequence::port_up);
}

TEST_CASE("a key with a wrong bit has a wrong checksum", "[verbs]") {
  remote_key key;
  key.address = 0x7f0012345000;
  key.size = 4096;
  key.keys[0] = 0x1234;
  key.keys[1] = 7;
  key.handle = checksum_of(key);
  CHECK(key.handle != 0);
  for (int bit = 0; bit < 64; ++bit) {
    remote_key address = key, size = key, keys = key;
    address.address ^= std::uint64_t{1} << bit;
    size.size ^= std::uint64_t{1} << bit;
    keys.keys[bit / 32] ^= 1U << (bit % 32);
    for (const remote_key& wrong : {address, size, keys}) CHECK(checksum_of(wrong) != key.handle);
  }
}
