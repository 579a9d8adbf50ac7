// The command line of the benchmarks, the same for ours and for the peers' builds: which sizes, how often,
// what to check and how to print. Knows nothing of any message-passing library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

enum class kind {
  latency,
  bandwidth,
  both_ways,
  pairs_bandwidth,
  pairs_latency,
  put_latency,
  get_latency,
  put_bandwidth,
  get_bandwidth,
  allreduce,
  barrier,
  broadcast,
  reduce,
  gather,
  scatter,
  allgather,
  alltoall
};

struct options {
  kind what{};
  std::string program;  ///< name for messages: "vb_latency"
  std::uint64_t min_size = 0;
  std::uint64_t max_size = 0;
  std::vector<std::uint64_t> listed;  ///< these sizes instead
  std::vector<int> iterations;        ///< none: by size, as OSU does; one for all; or one for each size listed
  std::optional<int> warmup;
  int window = 64;
  bool full = false;
  bool check = false;
  bool pin = false;
  std::string json;  ///< empty: none; "-": standard output, and no table
};

/// What it measures, for the head of the table: "one-way latency".
std::string title_of(const options& of);

/// Exit statuses of every benchmark.
inline constexpr int exit_failed = 1;  ///< wrong data, or the library reported an error
inline constexpr int exit_usage = 2;

/// Fills `into`, or returns the status to leave with (0 after --help). Messages are printed by the first rank
/// alone, found by what the launchers set in the environment: this runs before the job is joined.
std::optional<int> parse(int argc, char** argv, options& into);

/// Those listed; or min, then doubled up to max (0 is followed by 1), as OSU walks them.
std::vector<std::uint64_t> sizes(const options& of);

struct repetitions {
  int warmup = 0;
  int timed = 0;
  int all() const { return warmup + timed; }
};

/// How often a message of `size` is sent: OSU's defaults (fewer above 8 KiB), unless the user said.
repetitions repeat(const options& with, std::uint64_t size);

/// Binds this process to the `index`-th CPU it is allowed to use (modulo their number).
void pin_to_cpu(int index);

}  // namespace bench
