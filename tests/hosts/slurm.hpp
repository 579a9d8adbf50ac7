// Commands on the hosts of a Slurm cluster: h1 and h2 are its nodes, h3 is where its users log in.
#pragma once

#include "hosts.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

namespace verbena::tests {

/// As a user of the cluster.
inline std::string on_login(const std::string& command) {
  return "exec " + in_host() + " 3 " + command;
}

/// A batch script of one command, and what it wrote. Returns with the script's status.
inline outcome batch(const std::string& options, const std::string& command, double patience_s = 60) {
  return shell(
      fmt::format(
          "printf '#!/bin/sh\\n%s\\n' \"$COMMAND\" >$T/script; {} 3 sbatch -Q --wait -o $T/out -e $T/err {} "
          "$T/script; status=$?; cat $T/out; cat $T/err >&2; exit $status",
          in_host(), options),
      {{"COMMAND", command}}, patience_s);
}

/// No process on any host, and no job in Slurm's queue.
inline void nothing_left(double patience_s) {
  for (const int host : {1, 2, 3}) {
    CAPTURE(host);
    CHECK(left_on(host, patience_s) == "");
  }
  outcome queue;
  const base::nanoseconds end = base::steady_now() + static_cast<base::nanoseconds>(patience_s * 1e9);
  do queue = shell(on_login("squeue -h"));
  while (!queue.output.empty() && base::steady_now() < end);
  CHECK(queue.output == "");
}

inline std::string benchmark(const std::string& words) {
  return BENCHMARKS_PATH "/" + words;
}

}  // namespace verbena::tests
