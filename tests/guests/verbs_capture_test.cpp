// Runs in two guests at once, with whole contexts: what a message is on the wire between two machines, and whose memory it is
// moved between.
#include "capture.hpp"
#include "line_bootstrap.hpp"
#include "pair.hpp"
#include "registered.hpp"
#include "runtime/context_state.hpp"

#include <verbena/verbena.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory_resource>
#include <thread>

namespace {

using namespace verbena;
using namespace verbena::tests;

constexpr std::size_t large = 16 << 20;
constexpr std::uint32_t sender_address = 0x0a000001;
/// A packet without a message in it: what a rendezvous says, and what goes with it.
constexpr std::size_t words_only = 96;

base::settings only_verbs() {
  base::settings s;
  s.fabric = "verbs";
  s.link_timeout_s = 300;  // so that nobody asks in between whether the other is there
  return s;
}

/// Calls `each(piece, what it should be)` for all of a message: a row of bytes again and again, of no size that anything else
/// has. Whole pieces, for the processor is emulated.
template <class Byte, class Function>
void walk(std::span<Byte> message, std::size_t seed, Function&& each) {
  static const std::vector<std::byte> row = [] {
    std::vector<std::byte> made(65521);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(i * 11 + i / 251);
    return made;
  }();
  for (std::size_t from = seed * 37; !message.empty(); from = 0) {
    const std::size_t bytes = std::min(message.size(), row.size() - from);
    each(message.first(bytes), std::span(row).subspan(from, bytes));
    message = message.subspan(bytes);
  }
}

void fill(std::span<std::byte> message, std::size_t seed) {
  walk(message, seed, [](auto piece, auto right) { std::memcpy(piece.data(), right.data(), piece.size()); });
}

bool matches(std::span<const std::byte> message, std::size_t seed) {
  bool all = true;
  walk(message, seed, [&](auto piece, auto right) {
    all = all && std::memcmp(piece.data(), right.data(), piece.size()) == 0;
  });
  return all;
}

/// This guest's rank: 0 sends, 1 receives.
class pair_of_ranks {
 public:
  pair_of_ranks(line& to, int guest)
      : to_(to),
        self_(runtime::context_state::join(std::make_unique<line_bootstrap>(to, guest), only_verbs())) {
    // Afterwards there is a connection, and nothing about it is left to say.
    for (int i = 0; i < 3; ++i) {
      int word = i;
      if (sends())
        world_.send(word, rank{1}, tag{1});
      else
        world_.recv(word, rank{0}, tag{1});
      barrier(world_);
    }
  }

  bool sends() const { return self_.rank() == rank{0}; }
  context& self() { return self_; }
  std::uint64_t counter(const std::string& wanted) {
    for (const auto& [name, value] : self_.counters())
      if (name == wanted) return value;
    throw std::runtime_error("there is no counter " + wanted);
  }

  /// What both guests see while a buffer is sent from the one's into the other's. The line between the guests is no RoCE.
  std::vector<roce_packet> send(std::span<std::byte> buffer, std::size_t seed) {
    if (sends())
      fill(buffer, seed);
    else
      std::memset(buffer.data(), 0, buffer.size());
    to_.meet();
    wait_for_silence();
    to_.meet();
    capture watching("eth0");
    to_.meet();
    if (sends())
      world_.send(buffer, rank{1}, tag{2});
    else
      world_.recv(buffer, rank{0}, tag{2});
    to_.meet();
    std::vector<roce_packet> seen = watching.end();
    expect(matches(buffer, seed), "every byte is what was sent");
    return seen;
  }
  /// What was before may still be acknowledged, or sent again because the emulated processor acknowledged late.
  static void wait_for_silence() {
    for (int patience = 0; patience < 50; ++patience) {
      capture before("eth0");
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (before.end().empty()) return;
    }
    expect(false, "nothing is on the wire when nobody sends");
  }
  /// Where the receiver's begins.
  std::uint64_t receiver_of(std::span<std::byte> buffer) {
    const auto mine = reinterpret_cast<std::uintptr_t>(buffer.data());
    const std::uint64_t theirs = to_.exchange(std::uint64_t{mine});
    return sends() ? theirs : mine;
  }

 private:
  line& to_;
  context self_;
  communicator world_ = self_.world();
};

/// RDMA Writes of exactly these bytes, straight into the memory at `address`, and SENDs that only talk about it.
void expect_writes(const std::vector<roce_packet>& seen, std::uint64_t address, std::size_t bytes) {
  std::size_t written = 0, sends = 0;
  std::vector<rdma_target> targets;
  for (const roce_packet& p : seen) {
    if (p.is_write()) {
      expect(p.from == sender_address, "only the sender writes");
      written += p.payload;
      if (p.target) targets.push_back(*p.target);
    } else if (p.is_send()) {
      ++sends;
      expect(p.opcode >= static_cast<std::uint8_t>(rc::send_only) && p.payload <= words_only,
             fmt::format("a SEND carries words only, not {} bytes (opcode {})", p.payload, p.opcode));
    } else
      expect(p.opcode != static_cast<std::uint8_t>(rc::read_request), "nobody reads");
  }
  fmt::print("  {} bytes by {} RDMA Writes, {} SENDs, {} packets\n", written, targets.size(), sends,
             seen.size());
  expect(written == bytes, fmt::format("{} bytes are written, not {}", bytes, written));
  expect(sends >= 3 && sends <= 8, fmt::format("announced, asked for and finished: {} SENDs", sends));
  std::sort(targets.begin(), targets.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (const rdma_target& t : targets) {
    expect(t.address == address,
           fmt::format("a work request goes to the user's memory {:#x}, not to {:#x}", address, t.address));
    address += t.bytes;
    bytes -= t.bytes;
  }
  expect(bytes == 0, "the work requests are for all of it");
}

/// The key of its first RDMA Write.
std::uint32_t key_of(const std::vector<roce_packet>& seen) {
  const auto first =
      std::find_if(seen.begin(), seen.end(), [](const roce_packet& p) { return p.is_write() && p.target; });
  return first == seen.end() ? 0 : first->target->key;
}

void small_message(line& to, int guest) {
  pair_of_ranks ranks(to, guest);
  std::array<std::byte, 8> word{};
  const auto seen = ranks.send(word, 5);
  std::size_t sends = 0;
  for (const roce_packet& p : seen) {
    expect(!p.is_write() && !p.target, "nothing is written or read");
    if (!p.is_send()) continue;
    ++sends;
    expect(p.from == sender_address, "it is the sender's");
    expect(std::search(p.begins.begin(), p.begins.end(), word.begin(), word.end()) != p.begins.end(),
           "with the message in it");
  }
  expect(sends == 1, fmt::format("8 bytes are one SEND, not {}", sends));
}

void large_message(line& to, int guest) {
  pair_of_ranks ranks(to, guest);
  std::pmr::vector<std::byte> buffer(large, &memory(ranks.self()));
  const std::uint64_t address = ranks.receiver_of(buffer);
  expect_writes(ranks.send(buffer, 4), address, large);
  to.meet();
}

void sent_twice(line& to, int guest) {
  constexpr std::size_t size = 2 << 20;
  pair_of_ranks ranks(to, guest);
  std::pmr::vector<std::byte> buffer(size, &memory(ranks.self()));
  const std::uint64_t address = ranks.receiver_of(buffer);
  const auto first = ranks.send(buffer, 1);
  expect_writes(first, address, size);
  const std::string regions = registered_regions();
  expect(has_region_of(regions, size), "the buffer is registered");
  const std::uint64_t made = ranks.counter("registrations_made"),
                      found = ranks.counter("registrations_found");
  const auto second = ranks.send(buffer, 2);
  expect_writes(second, address, size);
  expect(registered_regions() == regions, "the same regions are registered after the second message");
  expect(key_of(first) == key_of(second), "with the same key");
  expect(ranks.counter("registrations_made") == made, "nothing is registered for it");
  expect(ranks.counter("registrations_found") > found, "but found");
  to.meet();
}

/// Memory of the program's own, and not even at the beginning of a page.
void any_memory(line& to, int guest) {
  pair_of_ranks ranks(to, guest);
  std::vector<std::byte> block((1 << 20) + 100);
  const std::span buffer = std::span(block).subspan(3, (1 << 20) + 5);
  const std::uint64_t address = ranks.receiver_of(buffer);
  expect_writes(ranks.send(buffer, 3), address, buffer.size());
  to.meet();
}

}  // namespace

TEST_CASE("8 bytes are one SEND on the wire", "[verbs]") {
  play(small_message);
}

TEST_CASE("16 MiB are RDMA Writes into the user's memory", "[verbs]") {
  play(large_message);
}

TEST_CASE("a buffer that is sent twice is registered once", "[verbs]") {
  play(sent_twice);
}

TEST_CASE("a large message in any memory is written straight into it", "[verbs]") {
  play(any_memory);
}
