// A rank program of collectives_death_test: `die_in_collective COUNT [leave]` all-reduces COUNT doubles again
// and again (0: barriers) until rank 1 kills itself, or leaves in good order. The others, who do not let the
// launcher end them, print what they were told and how long after that.
#include <verbena/verbena.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGTERM, SIG_IGN);
  // Outlives the context: members that live may use the buffers of a call that failed.
  std::vector<double> vector(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1, 1.0);
  verbena::context context;
  const verbena::communicator world = context.world();
  double last = seconds();  // the last call began no earlier than the death, but for one call's time
  try {
    for (int round = 0;; ++round) {
      if (round == 200 && world.rank() == verbena::rank{1}) {
        if (argc > 2) return 0;
        std::raise(SIGKILL);
      }
      last = seconds();
      if (vector.empty()) {
        verbena::barrier(world);
      } else {
        verbena::allreduce(world, vector, vector, verbena::reduction::max);
      }
    }
  } catch (const verbena::error& e) {
    std::printf("%s within a second: %s\n", seconds() - last < 1 ? "told" : "NOT told", e.what());
    return e.reason() == (argc > 2 ? verbena::errc::peer_left : verbena::errc::peer_failed) ? 0 : 1;
  }
}
