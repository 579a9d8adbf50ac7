// The floor under every figure of one node, and the state the machine is in: two processes, each bound to a
// CPU, hand one cache line to and fro. Prints the median over rounds of the time one way, in nanoseconds.
// Virtual cores move between near and far within a minute, so a comparison takes this before and after each
// run.
//
//   line_probe [CPU CPU [MILLISECONDS]]
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
constexpr int round_trips = 2000;

struct alignas(128) shared_line {
  std::atomic<std::uint64_t> word{0};  // even: the first process's turn; release hands over, acquire takes
};

bool bind_to(pid_t process, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(process, sizeof set, &set) == 0) return true;
  std::fprintf(stderr, "line_probe: cannot bind to CPU %d\n", cpu);
  return false;
}

[[noreturn]] void answer_forever(shared_line& line) {
  for (std::uint64_t turn = 1;; turn += 2) {
    while (line.word.load(std::memory_order_acquire) != turn) {
    }
    line.word.store(turn + 1, std::memory_order_release);
  }
}

double one_way_ns(shared_line& line, std::uint64_t& turn) {
  const auto start = clock_type::now();
  for (int i = 0; i < round_trips; ++i, turn += 2) {
    line.word.store(turn + 1, std::memory_order_release);
    while (line.word.load(std::memory_order_acquire) != turn + 2) {
    }
  }
  return std::chrono::duration<double, std::nano>(clock_type::now() - start).count() / (2.0 * round_trips);
}

}  // namespace

int main(int argc, char** argv) {
  const int first = argc > 2 ? std::atoi(argv[1]) : 0;
  const int second = argc > 2 ? std::atoi(argv[2]) : 1;
  const int milliseconds = argc > 3 ? std::atoi(argv[3]) : 100;
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::perror("line_probe: mmap"), 1;
  auto& line = *new (memory) shared_line;
  const pid_t child = fork();
  if (child < 0) return std::perror("line_probe: fork"), 1;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    answer_forever(line);
  }
  const bool bound = bind_to(0, first) && bind_to(child, second);
  std::vector<double> rounds;
  std::uint64_t turn = 0;
  const auto end = clock_type::now() + std::chrono::milliseconds(milliseconds);
  while (bound && (rounds.empty() || clock_type::now() < end)) rounds.push_back(one_way_ns(line, turn));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!bound) return 1;
  std::nth_element(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2),
                   rounds.end());
  std::printf("%.1f\n", rounds[rounds.size() / 2]);
  return 0;
}
