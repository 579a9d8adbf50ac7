// What the bare shm fabric does between two pinned processes, next to the cache-line ping-pong that bounds
// it, measured before and after: the two cores drift between near and far, and a figure means something only
// beside the probe of its minute. Not installed; for working on the fabric.
#include "base/prefetch.hpp"
#include "base/job_page.hpp"
#include "transport/shm/shm_fabric.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace {

using namespace verbena;
using namespace verbena::transport;

struct alignas(64) line {
  std::atomic<std::uint32_t> word;
};

struct counting_sink {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::byte* target = nullptr;  ///< where payloads are copied, one behind the other
  remote_key ticket;
  void on_packet(peer, envelope, std::span<const std::byte> payload) noexcept {
    if (target != nullptr && payload.size() != sizeof ticket)
      std::memcpy(target + bytes, payload.data(), payload.size());
    else if (payload.size() == sizeof ticket)
      std::memcpy(&ticket, payload.data(), sizeof ticket);
    bytes += payload.size();
    ++packets;
  }
  void on_flag(peer, std::uint64_t) noexcept {}
  void on_peer_down(peer, errc) noexcept { std::_Exit(1); }
  void on_limits_changed(peer) noexcept {}
};

class side {
 public:
  side(const base::job_page& page, const base::mapping& map, std::uint32_t me)
      : me_(me), other_(1 - me), fabric_(page, {map.data(), map.size()}, me), buffer_(8 << 20) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(me, &set);
    ::sched_setaffinity(0, sizeof set, &set);
    std::memset(buffer_.data(), 1, buffer_.size());
    lines_ = reinterpret_cast<line*>(fabric_.world_block().data());
  }
  bool first() const { return me_ == 0; }

  double probe(int rounds) {
    line& mine = lines_[me_];
    line& theirs = lines_[1 - me_];
    const std::uint32_t begin = mine.word.load();
    const auto start = base::steady_now();
    for (int i = 1; i <= rounds; ++i) {
      const std::uint32_t value = begin + static_cast<std::uint32_t>(i);
      if (first()) mine.word.store(value, std::memory_order_release);
      while (theirs.word.load(std::memory_order_acquire) != value) {
      }
      if (!first()) mine.word.store(value, std::memory_order_release);
    }
    return static_cast<double>(base::steady_now() - start) / rounds / 2;
  }

  /// One way, nanoseconds; `whole`: poll everything, as an engine with other work does.
  double latency(int rounds, std::size_t bytes, bool whole) {
    sink_ = {};
    const auto start = base::steady_now();
    for (int i = 0; i < rounds; ++i) {
      if (first()) send(bytes);
      receive(whole);
      if (!first()) send(bytes);
    }
    return static_cast<double>(base::steady_now() - start) / rounds / 2;
  }

  /// Million messages a second, `window` in flight, one answer for each window.
  double rate(int rounds, int window) {
    sink_ = {};
    const auto start = base::steady_now();
    for (int i = 0; i < rounds; ++i) {
      if (first()) {
        for (int k = 0; k < window; ++k) send(8);
        receive(false);
      } else {
        for (const auto until = sink_.packets + static_cast<std::uint64_t>(window); sink_.packets < until;)
          fabric_.poll(0, sink_);
        send(8);
      }
    }
    return static_cast<double>(rounds) * window * 1e3 / static_cast<double>(base::steady_now() - start);
  }

  /// One way, nanoseconds, of a message in pieces, copied from and to user memory.
  double pieces(int rounds, std::size_t bytes, std::size_t piece, bool fresh) {
    auto go = [&] {
      if (fresh) std::memset(buffer_.data(), static_cast<int>(sink_.bytes & 0xff), bytes);
      for (std::size_t at = 0; at < bytes; at += piece) {
        const std::size_t size = std::min(piece, bytes - at);
        while (fabric_.send(other_, {}, size, [&](std::byte* to) {
          std::memcpy(to, buffer_.data() + at, size);
        }) != post_result::done) {
        }
      }
    };
    auto come = [&] {
      sink_ = {};
      sink_.target = buffer_.data() + (4 << 20);
      while (sink_.bytes < bytes) fabric_.poll_from(other_, 0, sink_);
    };
    const auto start = base::steady_now();
    for (int i = 0; i < rounds; ++i) {
      if (first()) go();
      come();
      if (!first()) go();
    }
    return static_cast<double>(base::steady_now() - start) / rounds / 2;
  }

  /// One way, nanoseconds, of a message copied by both ends.
  double together(int rounds, std::size_t bytes, bool fresh) {
    operation op;
    std::uint64_t tickets = 0;
    auto go = [&] {
      if (fresh) std::memset(buffer_.data(), static_cast<int>(tickets & 0xff), bytes);
      remote_key ticket;
      fabric_.offer(other_, {buffer_.data(), bytes}, ticket, op);
      while (fabric_.send(other_, {}, sizeof ticket, [&](std::byte* to) {
        std::memcpy(to, &ticket, sizeof ticket);
      }) != post_result::done) {
      }
      while (!op.done()) fabric_.poll(0, sink_);
    };
    auto come = [&] {
      // The next ticket may already have come while we waited for the end of our own message.
      for (++tickets; sink_.packets < tickets;) fabric_.poll(0, sink_);
      fabric_.accept(other_, {buffer_.data() + (4 << 20), bytes}, sink_.ticket, op);
      while (!op.done()) fabric_.poll(0, sink_);
    };
    sink_ = {};
    const auto start = base::steady_now();
    for (int i = 0; i < rounds; ++i) {
      if (first()) go();
      come();
      if (!first()) go();
    }
    return static_cast<double>(base::steady_now() - start) / rounds / 2;
  }

 private:
  void send(std::size_t bytes) {
    while (fabric_.send(other_, {1, 2}, bytes, [&](std::byte* to) {
      if (bytes == 8)
        std::memcpy(to, buffer_.data(), 8);
      else
        std::memcpy(to, buffer_.data(), bytes);
    }) != post_result::done) {
    }
  }
  void receive(bool whole) {
    const auto before = sink_.packets;
    if (whole)
      while (sink_.packets == before) fabric_.poll(0, sink_);
    else
      while (sink_.packets == before) fabric_.poll_from(other_, 0, sink_);
  }

  std::uint32_t me_;
  peer other_;
  shm::shm_fabric fabric_;
  counting_sink sink_;
  std::vector<std::byte> buffer_;
  line* lines_ = nullptr;
};

/// `what` runs in both processes; the first one prints it between two probes.
template <class What>
void measure(side& s, const char* name, const char* unit, int repeats, What&& what) {
  std::string text;
  for (int i = 0; i < repeats; ++i) {
    const double before = s.probe(20000);
    const double value = what();
    const double after = s.probe(20000);
    if (s.first()) text += fmt::format("  {:9.1f} ({:3.0f}{:4.0f})", value, before, after);
  }
  if (s.first()) fmt::print("{:<34}{:<5}{}\n", name, unit, text);
  std::fflush(stdout);
}

void run_large(side& s, int repeats, const std::string& only, bool fresh) {
  auto wanted = [&](const char* name) { return only.empty() || only == name; };
  const char* kind = fresh ? ", fresh" : "";
  if (wanted("pieces"))
    for (const std::size_t bytes : std::initializer_list<std::size_t>{4096, 8192, 16384, 65536, 262144, 1048576})
      for (const std::size_t piece : std::initializer_list<std::size_t>{2048, 4096}) {
        const auto name = fmt::format("{} KiB, pieces of {}{}", bytes / 1024, piece, kind);
        const int rounds = static_cast<int>((64 << 20) / bytes);
        measure(s, name.c_str(), "ns", repeats, [&] { return s.pieces(rounds, bytes, piece, fresh); });
      }
  if (wanted("together"))
    for (const std::size_t bytes : std::initializer_list<std::size_t>{8192, 16384, 32768, 65536, 131072, 262144, 1048576, 4194304}) {
      const auto name = fmt::format("{} KiB, together{}", bytes / 1024, kind);
      const int rounds = static_cast<int>(std::min<std::size_t>(2000, (256 << 20) / bytes));
      measure(s, name.c_str(), "ns", repeats, [&] { return s.together(rounds, bytes, fresh); });
    }
}

void run(side& s, int repeats, const std::string& only) {
  auto wanted = [&](const char* name) { return only.empty() || only == name; };
  if (wanted("lat")) {
    measure(s, "8 B one way, poll_from", "ns", repeats, [&] { return s.latency(100000, 8, false); });
    measure(s, "8 B one way, poll", "ns", repeats, [&] { return s.latency(100000, 8, true); });
    measure(s, "40 B one way, poll_from", "ns", repeats, [&] { return s.latency(100000, 40, false); });
    measure(s, "64 B one way, poll_from", "ns", repeats, [&] { return s.latency(100000, 64, false); });
    measure(s, "1 KiB one way, poll_from", "ns", repeats, [&] { return s.latency(50000, 1024, false); });
  }
  if (only == "grown") {
    s.rate(100, 1024);
    measure(s, "8 B one way, poll_from", "ns", repeats, [&] { return s.latency(100000, 8, false); });
    measure(s, "8 B one way, poll", "ns", repeats, [&] { return s.latency(100000, 8, true); });
  }
  if (wanted("rate")) {
    measure(s, "8 B, window 64", "M/s", repeats, [&] { return s.rate(20000, 64); });
    measure(s, "8 B, window 1024", "M/s", repeats, [&] { return s.rate(2000, 1024); });
  }
  // A source that is written anew for each message, as in a program; benchmarks as a rule send it unchanged.
  for (const bool fresh : {false, true}) run_large(s, repeats, only, fresh);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 5;
  const std::string only = argc > 2 ? argv[2] : "";  // lat | rate | pieces | together
  base::unique_fd fd = base::create_segment({.job_size = 2, .local_ranks = {0, 1}});
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return 1;
  base::mapping map = base::mapping::shared(fd.get(), static_cast<std::size_t>(info.st_size));
  std::string why;
  auto page = base::job_page::open(map, why);
  if (!page) return 1;
  const pid_t child = ::fork();
  if (child == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it spins: never leave it alone
  {
    side s(*page, map, child == 0 ? 1 : 0);
    run(s, repeats, only);
  }
  if (child == 0) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
