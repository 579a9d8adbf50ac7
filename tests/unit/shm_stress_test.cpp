// Fabrics that run at once: threads over one mapping (for the thread sanitizer), and processes.
#include "base/prefetch.hpp"
#include "tests/unit/shm_node.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <thread>

using namespace verbena;
using namespace verbena::testing;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t messages_per_pair = 3000;
#else
constexpr std::uint64_t messages_per_pair = 80000;
#endif

std::size_t size_of(std::uint64_t n, std::uint32_t from) {
  const std::uint64_t h = (n * 2654435761u + from * 40503u) >> 7;
  return h % 16 == 0 ? h % 4097 : h % 16 < 4 ? h % 700 : h % 41;
}

/// One rank: sends its messages to everybody and large ones to its neighbour, checks what comes.
struct rank_program {
  shm::shm_fabric& fabric;
  std::uint32_t self;
  std::uint32_t ranks;
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;
  std::vector<remote_key> tickets;
  bool good = true;

  rank_program(shm::shm_fabric& f, std::uint32_t me, std::uint32_t n)
      : fabric(f), self(me), ranks(n), sent(n), received(n) {}

  void on_packet(peer from, envelope head, std::span<const std::byte> payload) noexcept {
    if (head.second == 1) {
      remote_key ticket;
      std::memcpy(&ticket, payload.data(), sizeof ticket);
      tickets.push_back(ticket);
      return;
    }
    const std::uint64_t n = received[from.index]++;
    good = good && head.first == n && payload.size() == size_of(n, from.index) &&
           matches(payload.data(), n, payload.size() < 64 ? payload.size() : 64) &&
           (payload.empty() || payload.back() == pattern(n, payload.size() - 1));
  }
  void on_flag(peer, std::uint64_t) noexcept { good = false; }
  void on_peer_down(peer, errc) noexcept { good = false; }
  void on_limits_changed(peer) noexcept {}

  bool done() const {
    for (std::uint32_t i = 0; i < ranks; ++i)
      if (i != self && (sent[i] < messages_per_pair || received[i] < messages_per_pair)) return false;
    return true;
  }
  void run() {
    std::mt19937 random(self);
    for (std::uint64_t idle = 0; !done() && good && idle < 500'000'000; ++idle) {
      const auto to = static_cast<std::uint32_t>(random() % ranks);
      if (to != self)
        for (std::uint64_t burst = random() % 50; burst > 0 && sent[to] < messages_per_pair; --burst) {
          const std::uint64_t n = sent[to];
          const std::size_t bytes = size_of(n, self);
          if (fabric.send(peer{to}, {n, 0}, bytes, [&](std::byte* room) { fill(room, n, bytes); }) !=
              post_result::done)
            break;
          ++sent[to];
        }
      const base::nanoseconds now = static_cast<base::nanoseconds>(idle) * base::microsecond;
      if (random() % 3 == 0)
        fabric.poll_from(peer{static_cast<std::uint32_t>(random() % ranks)}, now, *this);
      else if (fabric.poll(now, *this) == 0)
        std::this_thread::yield();
    }
    good = good && done();
  }
  /// A ring of large messages: offers to the right, accepts from the left, both at once.
  void pass_large(int rounds) {
    const peer right{(self + 1) % ranks};
    const peer left{(self + ranks - 1) % ranks};
    for (int round = 0; round < rounds && good; ++round) {
      const std::size_t bytes = 1 + (static_cast<std::size_t>(round) * 77777) % 600000;
      std::vector<std::byte> out(bytes), in(bytes);
      fill(out.data(), self + static_cast<std::uint64_t>(round), bytes);
      operation sending, receiving;
      remote_key ticket;
      bool accepted = false;
      if (fabric.offer(right, {out.data(), bytes}, ticket, sending) != post_result::pending) good = false;
      while (good && fabric.send(right, {0, 1}, sizeof ticket, [&](std::byte* room) {
        std::memcpy(room, &ticket, sizeof ticket);
      }) == post_result::again)
        fabric.poll(0, *this);
      for (std::uint64_t idle = 0; good && !(sending.done() && receiving.done()); ++idle) {
        if (fabric.poll(0, *this) == 0) std::this_thread::yield();
        if (!accepted && !tickets.empty()) {
          accepted = true;
          if (fabric.accept(left, {in.data(), bytes}, tickets.front(), receiving) != post_result::pending)
            good = false;
          tickets.erase(tickets.begin());
        }
        if (idle > 500'000'000) good = false;
      }
      good = good && sending.result.error == errc::success && receiving.result.error == errc::success &&
             matches(in.data(), left.index + static_cast<std::uint64_t>(round), bytes);
    }
  }
};

}  // namespace

TEST_CASE("a million messages of random sizes between threads arrive in order and whole", "[shm][threads]") {
  constexpr std::uint32_t ranks = 4;
  shm_node node(ranks);
  std::vector<std::unique_ptr<shm::shm_fabric>> fabrics;
  for (std::uint32_t i = 0; i < ranks; ++i) fabrics.push_back(node.fabric(i));
  std::vector<rank_program> programs;
  for (std::uint32_t i = 0; i < ranks; ++i) programs.emplace_back(*fabrics[i], i, ranks);
  std::vector<std::thread> threads;
  for (auto& program : programs) threads.emplace_back([&program] { program.run(); });
  for (auto& thread : threads) thread.join();
  for (const auto& program : programs) CHECK(program.good);
}

TEST_CASE("large messages around a ring of threads", "[shm][threads]") {
  constexpr std::uint32_t ranks = 3;
  shm_node node(ranks);
  std::vector<std::unique_ptr<shm::shm_fabric>> fabrics;
  for (std::uint32_t i = 0; i < ranks; ++i) fabrics.push_back(node.fabric(i));
  std::vector<rank_program> programs;
  for (std::uint32_t i = 0; i < ranks; ++i) programs.emplace_back(*fabrics[i], i, ranks);
  std::vector<std::thread> threads;
  for (auto& program : programs) threads.emplace_back([&program] { program.pass_large(60); });
  for (auto& thread : threads) thread.join();
  for (const auto& program : programs) CHECK(program.good);
}

TEST_CASE("messages of random sizes and large ones between processes", "[shm]") {
  constexpr std::uint32_t ranks = 3;
  shm_node node(ranks);
  std::vector<std::unique_ptr<child_process>> children;
  for (std::uint32_t i = 0; i < ranks; ++i)
    children.push_back(std::make_unique<child_process>([&node, i] {
      auto fabric = node.fabric(i);
      // Wait until all have joined: single copy is tried once and only with who is there.
      auto* joined = reinterpret_cast<std::atomic<std::uint32_t>*>(fabric->world_block().data());
      for (joined->fetch_add(1); joined->load() < ranks;) ::usleep(100);
      rank_program program(*fabric, i, ranks);
      program.run();
      if (!program.good) return 1;
      program.pass_large(100);
      if (!program.good) return 2;
      for (joined->fetch_add(1); joined->load() < 2 * ranks;)
        fabric->poll(0, program);  // others may need our memory
      return 0;
    }));
  for (auto& child : children) CHECK(child->wait() == 0);
}
