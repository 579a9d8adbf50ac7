// Large messages copied by both ends, and one-sided access: sizes, alignments, tickets and keys that must be
// refused, copies that fail.
#include "tests/unit/shm_node.hpp"

#include <sys/mman.h>

#include <catch2/catch.hpp>

using namespace verbena;
using namespace verbena::testing;

namespace {

constexpr peer zero{0};
constexpr peer one{1};

struct two {
  shm_node node{2};
  std::unique_ptr<shm::shm_fabric> a = node.fabric(0);
  std::unique_ptr<shm::shm_fabric> b = node.fabric(1);
  null_sink sink;
  remote_key ticket;
  operation sending;
  operation receiving;

  std::size_t polls(int n) {
    std::size_t events = 0;
    for (int i = 0; i < n; ++i) events += a->poll(0, sink) + b->poll(0, sink);
    return events;
  }
  bool both_done() const { return sending.done() && receiving.done(); }
};

std::vector<std::byte> bytes_of(std::uint64_t n, std::size_t size) {
  std::vector<std::byte> v(size);
  fill(v.data(), n, size);
  return v;
}
buffer over(std::vector<std::byte>& v, std::size_t from = 0, std::size_t drop = 0) {
  return {v.data() + from, v.size() - from - drop};
}

}  // namespace

TEST_CASE("offered messages of all sizes and alignments arrive whole, whoever copies", "[shm]") {
  two t;
  REQUIRE(t.a->limits(one).bulk == bulk_method::together);
  const auto who = GENERATE(0, 1, 2);  // the receiver alone, both, the sender first
  for (std::size_t size : {1u, 2u, 63u, 4095u, 4096u, 4097u, 65535u, 65537u, 131072u, 1000003u, 5u << 20}) {
    for (std::size_t shift : {0u, 1u, 7u}) {
      auto source = bytes_of(size, size + shift);
      std::vector<std::byte> target(size + shift + 8, std::byte{0xee});
      REQUIRE(t.a->offer(one, over(source, shift), t.ticket, t.sending) == post_result::pending);
      REQUIRE(t.b->accept(zero, over(target, shift, 8), t.ticket, t.receiving) == post_result::pending);
      for (int i = 0; i < 200 && !t.both_done(); ++i) {
        if (who == 2) t.a->poll(0, t.sink);
        t.b->poll(0, t.sink);
        if (who == 1) t.a->poll(0, t.sink);
        if (who == 0 && t.receiving.done()) t.a->poll(0, t.sink);
      }
      REQUIRE(t.both_done());
      CHECK(t.sending.result.error == errc::success);
      CHECK(t.receiving.result.error == errc::success);
      CHECK(t.receiving.result.bytes == size);
      CHECK(std::memcmp(target.data() + shift, source.data() + shift, size) == 0);
      for (std::size_t i = 0; i < 8; ++i) CHECK(target[target.size() - 8 + i] == std::byte{0xee});
      if (shift > 0) CHECK(target[shift - 1] == std::byte{0xee});
    }
  }
}

TEST_CASE("transfers may be accepted in any order, and their descriptors are bounded and come back",
          "[shm]") {
  two t;
  constexpr std::size_t many = shm::transfer_slots;
  constexpr std::size_t size = 5000;
  std::vector<std::vector<std::byte>> source;
  std::vector<std::vector<std::byte>> target(many, std::vector<std::byte>(size));
  std::vector<remote_key> ticket(many);
  std::vector<operation> send(many);
  std::vector<operation> receive(many);
  for (int round = 0; round < 3; ++round) {
    source.clear();
    for (std::size_t i = 0; i < many; ++i) {
      source.push_back(bytes_of(i + static_cast<std::size_t>(round), size));
      REQUIRE(t.a->offer(one, over(source[i]), ticket[i], send[i]) == post_result::pending);
    }
    CHECK(t.a->offer(one, over(source[0]), t.ticket, t.sending) == post_result::again);
    CHECK_FALSE(t.sending.pending());
    CHECK(t.a->arm());  // nothing to do until somebody accepts
    // The last ones first: the sender must notice their end although older ones are not even accepted.
    for (std::size_t i = many; i-- > many / 2;)
      REQUIRE(t.b->accept(zero, over(target[i]), ticket[i], receive[i]) == post_result::pending);
    CHECK_FALSE(t.b->arm());
    t.polls(2000);
    for (std::size_t i = many / 2; i < many; ++i) CHECK((send[i].done() && receive[i].done()));
    CHECK_FALSE(send[0].done());
    for (std::size_t i = 0; i < many / 2; ++i)
      REQUIRE(t.b->accept(zero, over(target[i]), ticket[i], receive[i]) == post_result::pending);
    t.polls(2000);
    for (std::size_t i = 0; i < many; ++i) {
      CHECK((send[i].done() && receive[i].done()));
      CHECK(target[i] == source[i]);
    }
    CHECK(t.polls(1) == 0);
    CHECK((t.a->arm() && t.b->arm()));
  }
}

TEST_CASE("forged, stale, withdrawn and foreign tickets are refused", "[shm]") {
  shm_node node{3};
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  auto c = node.fabric(2);
  null_sink sink;
  auto source = bytes_of(1, 100000);
  std::vector<std::byte> target(source.size());
  remote_key ticket;
  operation sending;
  operation receiving;
  REQUIRE(a->offer(one, over(source), ticket, sending) == post_result::pending);
  auto refused = [&](auto change) {
    remote_key forged = ticket;
    change(forged);
    const bool down = b->accept(zero, over(target), forged, receiving) == post_result::down;
    return down && !receiving.pending();
  };
  CHECK(refused([](remote_key& k) { k.address += 64; }));
  CHECK(refused([](remote_key& k) { k.address += 128; }));
  CHECK(refused([](remote_key& k) { k.address = 0; }));
  CHECK(refused([](remote_key& k) { k.address = ~0ULL; }));
  CHECK(refused([](remote_key& k) { k.address += 1ULL << 40; }));
  CHECK(refused([](remote_key& k) { k.handle += 1; }));
  CHECK(refused([](remote_key& k) { k.size -= 1; }));
  CHECK(b->accept(zero, over(target, 1), ticket, receiving) == post_result::down);  // another size
  CHECK(c->accept(zero, over(target), ticket, receiving) == post_result::down);     // not offered to it
  CHECK(b->accept(peer{2}, over(target), ticket, receiving) == post_result::down);  // not by this peer

  CHECK(a->withdraw(one, ticket));
  CHECK(b->accept(zero, over(target), ticket, receiving) == post_result::down);
  CHECK_FALSE(sending.done());  // withdrawing does not complete it
  operation again;
  remote_key second;
  REQUIRE(a->offer(one, over(source), second, again) == post_result::pending);
  CHECK(second.address == ticket.address);  // the descriptor is reused, the old ticket stays dead
  CHECK(b->accept(zero, over(target), ticket, receiving) == post_result::down);
  CHECK_FALSE(a->withdraw(one, ticket));  // neither does it withdraw the new one
  REQUIRE(b->accept(zero, over(target), second, receiving) == post_result::pending);
  CHECK(b->accept(zero, over(target), second, sending) == post_result::down);  // once only
  CHECK_FALSE(a->withdraw(one, second));  // too late: it is accepted
  for (int i = 0; i < 10; ++i) b->poll(0, sink), a->poll(0, sink);
  CHECK((again.done() && receiving.done()));
  CHECK(target == source);
}

TEST_CASE("a copy that fails ends both operations with an error, and nobody hangs", "[shm]") {
  two t;
  constexpr std::size_t size = 3 << 20;
  // The second half of the memory at one end does not exist.
  auto* torn = static_cast<std::byte*>(
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(torn != MAP_FAILED);
  REQUIRE(::mprotect(torn + size / 2, size / 2, PROT_NONE) == 0);
  std::vector<std::byte> good(size);
  const bool at_source = GENERATE(true, false);
  const bool both = GENERATE(true, false);
  REQUIRE(t.a->offer(one, at_source ? buffer{torn, size} : over(good), t.ticket, t.sending) ==
          post_result::pending);
  REQUIRE(t.b->accept(zero, at_source ? over(good) : buffer{torn, size}, t.ticket, t.receiving) ==
          post_result::pending);
  for (int i = 0; i < 200 && !t.receiving.done(); ++i) {
    t.b->poll(0, t.sink);
    if (both) t.a->poll(0, t.sink);
  }
  t.polls(2);
  REQUIRE(t.both_done());
  CHECK(t.sending.result.error == errc::system);
  CHECK(t.receiving.result.error == errc::system);
  CHECK(t.receiving.result.bytes == 0);
  ::munmap(torn, size);
}

TEST_CASE("single copy can be switched off", "[shm]") {
  shm_node node{2};
  auto a = node.fabric(0, {.single_copy = false});
  auto b = node.fabric(1, {.single_copy = false});
  auto source = bytes_of(1, 100);
  remote_key ticket;
  operation op;
  CHECK(a->limits(one).bulk == bulk_method::stream);
  CHECK_FALSE(a->limits(one).native_put);
  CHECK(a->explain(one) == "shm: same segment; large messages are streamed: single copy is switched off");
  CHECK(a->offer(one, over(source), ticket, op) == post_result::down);
  CHECK(a->put(one, over(source), ticket, 0, op) == post_result::down);
}

TEST_CASE("a peer whose card is not its own process is found out by the trial", "[shm]") {
  shm_node node{2};
  auto a = node.fabric(0);
  auto b = node.fabric(1);
  auto& card = node.at<shm::rank_card>(node.places().at.cards + sizeof(shm::rank_card));
  SECTION("another process under that pid") {
    card.pid = 1;
  }
  SECTION("no process under that pid") {
    card.pid = 0x3fffffff;
  }
  SECTION("another value at that place") {
    card.trial_value ^= 1;
  }
  SECTION("nothing at that place") {
    card.trial_address = 64;
  }
  CHECK(a->limits(one).bulk == bulk_method::stream);
  CHECK_THAT(a->explain(one), Catch::Matchers::Contains("streamed"));
}

TEST_CASE("before the peer has joined nothing is assumed, afterwards it is proven", "[shm]") {
  shm_node node{2};
  auto a = node.fabric(0);
  CHECK(a->limits(one).bulk == bulk_method::stream);
  auto b = node.fabric(1);
  CHECK(a->limits(one).bulk == bulk_method::together);
  CHECK(a->explain(one) ==
        "shm: same segment; large messages are copied once, by both ends (process_vm_readv proven)");
}

TEST_CASE("put, get and put_with_flag reach registered memory and no other", "[shm]") {
  two t;
  recorder seen;
  auto window = bytes_of(1, 100000);
  auto local = bytes_of(2, 1000);
  auto region = t.b->register_memory(over(window));
  REQUIRE(region);
  const remote_key key = region.key();
  operation op;

  CHECK(t.a->put(one, over(local), key, 500, op) == post_result::done);
  CHECK(std::memcmp(window.data() + 500, local.data(), 1000) == 0);
  std::vector<std::byte> back(1000);
  CHECK(t.a->get(one, over(back), key, 500, op) == post_result::done);
  CHECK(back == local);
  CHECK(t.a->put(one, over(local), key, window.size() - 1000, op) == post_result::done);

  REQUIRE(send_message(*t.a, one, 7, 8) == post_result::done);
  CHECK(t.a->put_with_flag(one, over(local), key, 0, 0x1234567890abcdef, op) == post_result::done);
  t.b->poll(0, seen);
  CHECK(seen.packets.size() == 1);
  CHECK(seen.flags == std::vector<std::uint64_t>{0x1234567890abcdef});

  auto denied = [&](post_result posted) {
    CHECK(posted == post_result::pending);
    CHECK_FALSE(t.a->arm());
    t.a->poll(0, t.sink);
    return op.done() && op.result.error == errc::access_denied;
  };
  CHECK(denied(t.a->put(one, over(local), key, window.size() - 999, op)));
  CHECK(denied(t.a->put(one, over(local), key, ~0ULL, op)));
  remote_key forged = key;
  forged.handle += 2;
  CHECK(denied(t.a->get(one, over(back), forged, 0, op)));
  forged = key;
  forged.keys[1] = 1 << 20;
  CHECK(denied(t.a->get(one, over(back), forged, 0, op)));
  forged = key;
  forged.address -= 4096;
  CHECK(denied(t.a->put_with_flag(one, over(local), forged, 0, 1, op)));
  region = {};
  CHECK(denied(t.a->put(one, over(local), key, 0, op)));
  t.b->poll(0, seen);
  CHECK(seen.flags.size() == 1);  // a refused put raises no flag

  std::vector<shm::shm_fabric::region> all;
  while (auto next = t.b->register_memory(over(window))) all.push_back(std::move(next));
  CHECK(all.size() == shm::registration_slots);
  all.clear();
  CHECK(t.b->register_memory(over(window)));
}
