// The benchmarks as real ranks under rdmarun, every byte checked.
#include "command.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <sstream>
#include <string>
#include <vector>

using namespace verbena::tests;
using Catch::Matchers::Contains;

namespace {

#ifdef VERBENA_TEST_HOOKS
const std::string largest_allreduce = "1048576";  // sanitized builds: the checking itself is slow
#else
const std::string largest_allreduce = "16777216";
#endif

/// Runs a benchmark that must end well and print one row for each size.
void must_validate(const std::string& command, const std::string& largest) {
  INFO(command);
  const finished end = run(command, std::chrono::seconds(100));
  INFO(end.errors);
  CHECK_FALSE(end.timed_out);
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains("every byte checked") && Contains("\n" + largest + " "));
}

}  // namespace

TEST_CASE("vb_latency validates from 0 bytes to 4 MiB", "[benchmarks]") {
  must_validate("launcher/rdmarun -n 2 benchmarks/vb_latency -m 0:4194304 -i 50 -x 5 -c", "4194304");
}

TEST_CASE("vb_latency validates where ranks may not read each other's memory", "[benchmarks]") {
  must_validate(
      "VERBENA_SINGLE_COPY=off launcher/rdmarun -n 2 benchmarks/vb_latency -m 0:4194304 -i 20 -x 2 -c",
      "4194304");
}

TEST_CASE("vb_bw validates from 1 byte to 4 MiB", "[benchmarks]") {
  must_validate("launcher/rdmarun -n 2 benchmarks/vb_bw -m 1:4194304 -i 5 -x 1 -c", "4194304");
}

TEST_CASE("vb_bibw validates from 1 byte to 4 MiB", "[benchmarks]") {
  must_validate("launcher/rdmarun -n 2 benchmarks/vb_bibw -m 1:4194304 -i 5 -x 1 -c", "4194304");
}

TEST_CASE("the benchmarks of all pairs validate with two ranks, four, and one too many",
          "[benchmarks][many]") {
  const int ranks = GENERATE(2, 4, 5);
  must_validate(fmt::format("launcher/rdmarun -n {} benchmarks/vb_multi_lat -m 0:1m -i 5 -x 1 -c", ranks),
                "1048576");
  must_validate(fmt::format("launcher/rdmarun -n {} benchmarks/vb_mbw_mr -m 1:1m -i 2 -x 1 -W 16 -c", ranks),
                "1048576");
}

TEST_CASE("puts and gets validate, in pieces and in windows", "[benchmarks]") {
  const std::string name = GENERATE("put_latency", "get_latency", "put_bw", "get_bw");
  const int ranks = GENERATE(2, 3);
  must_validate(fmt::format("launcher/rdmarun -n {} benchmarks/vb_{} -m 1:4m -i 4 -x 1 -c", ranks, name),
                "4194304");
}

TEST_CASE("puts and gets validate where ranks may not read each other's memory", "[benchmarks]") {
  const std::string name = GENERATE("put_bw", "get_bw");
  must_validate(
      fmt::format("VERBENA_SINGLE_COPY=off launcher/rdmarun -n 2 benchmarks/vb_{} -m 1:1m -i 2 -x 1 -c",
                  name),
      "1048576");
}

TEST_CASE("further ranks wait for the measuring pair and end with it", "[benchmarks][many]") {
  must_validate("launcher/rdmarun -n 5 benchmarks/vb_latency -m 1k:1k -i 100 -c", "1024");
  must_validate("launcher/rdmarun -n 4 benchmarks/vb_bw -m 1k:1k -i 10 -c", "1024");
}

TEST_CASE("vb_allreduce validates with each algorithm forced and 1, 2, 3 and 7 ranks", "[benchmarks][many]") {
  const std::string algorithm = GENERATE("recursive_doubling", "ring", "node", "auto");
  const int ranks = GENERATE(1, 2, 3, 7);
  if (algorithm == "node" && ranks > 1 && on_several_hosts()) return;
  must_validate(
      fmt::format("VERBENA_ALLREDUCE={} launcher/rdmarun -n {} benchmarks/vb_allreduce -m 4:{} -i 2 -x 1 -c",
                  algorithm, ranks, largest_allreduce),
      largest_allreduce);
}

TEST_CASE("the other collectives validate with each algorithm forced", "[benchmarks][many]") {
  struct row {
    std::string benchmark, variable;
    std::vector<std::string> algorithms;
    std::string least;
  };
  const row rows[] = {{"bcast", "BROADCAST", {"auto", "binomial", "scatter_ring", "node"}, "0"},
                      {"reduce", "REDUCE", {"auto", "binomial", "scatter_gather", "node"}, "4"},
                      {"gather", "GATHER", {"auto", "binomial", "linear", "node"}, "0"},
                      {"scatter", "SCATTER", {"auto", "binomial", "linear", "node"}, "0"},
                      {"allgather", "ALLGATHER", {"auto", "bruck", "ring", "node"}, "0"},
                      {"alltoall", "ALLTOALL", {"auto", "bruck", "pairwise", "node"}, "0"}};
  for (const row& one : rows)
    for (const std::string& algorithm : one.algorithms)
      for (const int ranks : {1, 2, 5}) {
        if (algorithm == "node" && ranks > 1 && on_several_hosts()) continue;
        must_validate(
            fmt::format("VERBENA_{}={} launcher/rdmarun -n {} benchmarks/vb_{} -m {}:262144 -i 2 -x 1 -c",
                        one.variable, algorithm, ranks, one.benchmark, one.least),
            "262144");
      }
  for (const int ranks : {1, 2, 5})
    must_validate(fmt::format("launcher/rdmarun -n {} benchmarks/vb_barrier -i 20 -c", ranks), "0");
}

TEST_CASE("a benchmark of a pair started alone says what it needs", "[benchmarks]") {
  const finished end = run("benchmarks/vb_latency -m 8");
  CHECK(end.status == 2);
  CHECK(end.errors == "vb_latency: needs 2 ranks and was started as 1; start it under rdmarun -n 2\n");
}

TEST_CASE("vb_allreduce started by hand is a job of one", "[benchmarks]") {
  must_validate("benchmarks/vb_allreduce -m 4:4096 -c", "4096");
}

TEST_CASE("wrong words are refused once, before the job starts", "[benchmarks]") {
  const finished end = run("launcher/rdmarun -n 2 benchmarks/vb_bw -m 64:8");
  CHECK(end.status == 2);
  CHECK_THAT(end.errors,
             Contains("vb_bw: -m: '64:8': the smallest size is above the largest; see vb_bw --help"));
  CHECK(end.errors.find("smallest") == end.errors.rfind("smallest"));
}

TEST_CASE("sizes and repetitions can be listed", "[benchmarks]") {
  const finished end = run("launcher/rdmarun -n 2 benchmarks/vb_latency -m 64k,8,1k -i 2,30,5 -f");
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  std::string rows;  // size and repetitions
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string size, latency, times;
    if (line.front() != '#' && words >> size >> latency >> times) rows += size + "*" + times + " ";
  }
  CHECK(rows == "65536*2 8*30 1024*5 ");
  CHECK_THAT(run("benchmarks/vb_bw -m 8,1k -i 1,2,3").errors,
             Contains("vb_bw: -i: 3 repetitions for 2 sizes listed"));
  CHECK_THAT(run("benchmarks/vb_bw -m 8,,1k").errors, Contains("vb_bw: -m: '' is no message size"));
  CHECK_THAT(run("benchmarks/vb_allreduce -m 8,6").errors, Contains("multiples of 4 bytes"));
}

TEST_CASE("the JSON has the figures of the table", "[benchmarks]") {
  const finished end = run("launcher/rdmarun -n 2 benchmarks/vb_latency -m 8:16 -i 10 --json -");
  CHECK(end.status == 0);
  CHECK_THAT(end.output, Contains(R"("benchmark": "vb_latency")") && Contains(R"("ranks": 2)") &&
                             Contains(R"("size": 16)") && Contains(R"("latency_us": )") &&
                             !Contains("# Size"));
}

TEST_CASE("the benchmarks of puts, both ways and pairs have OSU's columns", "[benchmarks]") {
  const auto head_of = [](const std::string& words) {
    const finished end = run("launcher/rdmarun -n 2 benchmarks/" + words + " -f");
    INFO(words << "\n" << end.errors);
    CHECK(end.status == 0);
    return end.output;
  };
  CHECK_THAT(head_of("vb_bibw -m 8:8 -i 2 -W 4"), Contains("bandwidth of both directions, window 4") &&
                                                      Contains("Bandwidth (MB/s)") && Contains("Messages/s"));
  CHECK_THAT(head_of("vb_mbw_mr -m 8:8 -i 2"), Contains("Bandwidth (MB/s)") && Contains("Messages/s"));
  CHECK_THAT(head_of("vb_multi_lat -m 8:8 -i 2"), Contains("Latency (us)"));
  CHECK_THAT(head_of("vb_put_latency -m 8:8 -i 2"), Contains("Latency (us)") && Contains("Iterations"));
  CHECK_THAT(head_of("vb_get_bw -m 8:8 -i 2"),
             Contains("bandwidth of gets, window 64") && Contains("Bandwidth (MB/s)"));
}

#ifdef VERBENA_TEST_HOOKS
TEST_CASE("a byte flipped below the API makes -c fail with size, rank and offset", "[benchmarks][faults]") {
  for (const char* benchmark :
       {"vb_latency -m 64:64 -c", "vb_latency -m 1m:1m -c -i 5", "vb_bw -m 4k:4k -c -i 5",
        "vb_bibw -m 4k:4k -c -i 5", "vb_mbw_mr -m 4k:4k -c -i 5", "vb_multi_lat -m 64:64 -c"}) {
    const finished end =
        run(fmt::format("VERBENA_TEST_FAULTS=flip_byte launcher/rdmarun -n 2 benchmarks/{}", benchmark));
    INFO(benchmark << "\n" << end.errors);
    CHECK_FALSE(end.timed_out);
    CHECK(end.status != 0);
    CHECK_THAT(end.errors, Catch::Matches(R"([\s\S]*rank [01]: size \d+: byte at offset \d+ is 0x[\s\S]*)"));
  }
}

TEST_CASE("a byte flipped below an all-reduce is named too", "[benchmarks][faults]") {
  const finished end =
      run("VERBENA_ALLREDUCE=ring VERBENA_TEST_FAULTS=flip_byte launcher/rdmarun -n 2 "
          "benchmarks/vb_allreduce -m 256:256 -c");
  INFO(end.errors);
  CHECK(end.status != 0);
  CHECK_THAT(end.errors, Catch::Matches(R"([\s\S]*rank [01]: size 256: byte at offset \d+ is 0x[\s\S]*)"));
}
#endif
