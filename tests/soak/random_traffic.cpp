// rdmarun -n 4 random_traffic SECONDS [SEED [ROUND]]: rounds of random, checked traffic of all kinds until the time is
// over, or that one round. Status 0 and a line of counts if no byte was wrong; a count of zero is a failure too when
// there was time enough (10 s). What hangs is named by the library's own line after ten seconds.
#include "tests/soak/traffic.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>

namespace {

using namespace verbena;
using namespace verbena::soak;

void print_counts(const traffic& t, double seconds) {
  std::printf("soak: %.0f s, seed %llu, rank 0: %.1f GiB", seconds, static_cast<unsigned long long>(t.seed),
              static_cast<double>(t.bytes) / (1u << 30));
  for (std::size_t i = 0; i < t.counts.size(); ++i)
    std::printf(", %llu %s", static_cast<unsigned long long>(t.counts[i]), count_names[i]);
  std::printf("\n");
  std::fflush(stdout);
}

/// Sleeps now and then, so that the others wait.
void dawdle(traffic& t) {
  dice own = t.own(99);
  if (!own.one_in(20)) return;
  const timespec pause{0, static_cast<long>(own.below(20'000'000))};
  ::nanosleep(&pause, nullptr);
}

void play(traffic& t, std::deque<owned_communicator>& kept) {
  dice d = t.common(0);
  dawdle(t);
  const communicator world = t.self.world();
  if (kept.size() < 6 && d.one_in(8)) kept.push_back(dup(world));
  if (!kept.empty() && d.one_in(10)) kept.pop_front();
  const communicator on = kept.empty() || d.one_in(3) ? world : communicator(kept[d.below(kept.size())]);
  switch (d.below(9)) {
    case 0:
    case 1:
    case 2:
      exchange_messages(t, on, 10);
      break;
    case 3:
      talk_in_pairs(t, on, 20);
      break;
    case 4:
    case 5:
      run_collectives(t, on, 30);
      break;
    case 6:
      access_memory(t, on, 40);
      break;
    case 7:
      flood(t, on, 60);
      break;
    default:
      make_communicators(t, on, 50);
  }
  t.add(count::rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 10;
  context self;
  traffic t{self};
  t.seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : static_cast<std::uint64_t>(std::time(nullptr));
  broadcast(self.world(), t.seed, rank{0});
  std::deque<owned_communicator> kept;
  if (argc > 3) {
    t.round = std::strtoull(argv[3], nullptr, 10);
    play(t, kept);
    return 0;
  }
  const double begin = wall_time();
  double told = begin;
  for (int go_on = 1; go_on != 0; ++t.round) {
    play(t, kept);
    if (t.round % 16 != 15) continue;
    const double now = wall_time();
    go_on = now - begin < seconds;
    broadcast(self.world(), go_on, rank{0});
    if (self.rank() == rank{0} && now - told > 60) {
      told = now;
      print_counts(t, now - begin);
    }
  }
  for (std::size_t i = 0; i < t.counts.size(); ++i)
    t.expect(seconds < 10 || allreduce(self.world(), t.counts[i]) != 0, count_names[i]);
  if (self.rank() == rank{0}) print_counts(t, wall_time() - begin);
}
