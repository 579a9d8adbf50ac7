// From main() to the loops: options, joining the job, who measures and who waits.
#pragma once

#include "options.hpp"
#include "ranks.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>

namespace bench {

/// Ranks beyond the pair wait here, in a receive, until rank 0 has finished.
template <message_ranks Ranks>
void wait_for_the_pair(Ranks& ranks) {
  if (ranks.rank() > 1) ranks.recv(nullptr, 0, 0, end_label);
}

template <message_ranks Ranks>
void release_the_others(Ranks& ranks) {
  if (ranks.rank() != 0) return;
  for (int other = 2; other < ranks.size(); ++other) ranks.send(nullptr, 0, other, end_label);
}

/// Runs `measure(ranks, options)` as one rank of a job with at least `needed` ranks.
template <message_ranks Ranks, class Measure>
int run(int argc, char** argv, kind what, int needed, Measure measure) {
  options with;
  with.what = what;
  const char* slash = std::strrchr(argv[0], '/');
  with.program = slash ? slash + 1 : argv[0];
  if (const auto status = parse(argc, argv, with)) return *status;
  try {
    Ranks ranks;
    if (ranks.size() < needed) {
      fmt::print(stderr, "{}: needs {} ranks and was started as {}; start it under rdmarun -n {}\n",
                 with.program, needed, ranks.size(), needed);
      return exit_usage;
    }
    if (with.pin) pin_to_cpu(ranks.rank());
    measure(ranks, with);
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}: {}\n", with.program, failure.what());
    return exit_failed;
  }
}

}  // namespace bench
