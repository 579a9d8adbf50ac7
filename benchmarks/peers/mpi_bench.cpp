// The benchmarks over MPI, as one program: its first word says which (latency, bw, allreduce, barrier, ...),
// the rest are the options of vb_*.
#include "mpi_ranks.hpp"

#include "allreduce.hpp"
#include "bandwidth.hpp"
#include "collective.hpp"
#include "latency.hpp"

#include <string_view>
#include <utility>

int main(int argc, char** argv) {
  using bench::mpi_ranks;
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "latency")
    return bench::run<mpi_ranks>(argc - 1, argv + 1, bench::kind::latency, 2,
                                 bench::measure_latency<mpi_ranks>);
  if (what == "bw")
    return bench::run<mpi_ranks>(argc - 1, argv + 1, bench::kind::bandwidth, 2,
                                 bench::measure_bandwidth<mpi_ranks>);
  if (what == "allreduce")
    return bench::run<mpi_ranks>(argc - 1, argv + 1, bench::kind::allreduce, 1,
                                 bench::measure_allreduce<mpi_ranks>);
  constexpr std::pair<std::string_view, bench::kind> collectives[] = {
      {"barrier", bench::kind::barrier},  {"bcast", bench::kind::broadcast},
      {"reduce", bench::kind::reduce},    {"gather", bench::kind::gather},
      {"scatter", bench::kind::scatter},  {"allgather", bench::kind::allgather},
      {"alltoall", bench::kind::alltoall}};
  for (const auto& [name, kind] : collectives)
    if (what == name)
      return bench::run<mpi_ranks>(argc - 1, argv + 1, kind, 1, bench::measure_collective<mpi_ranks>);
  fmt::print(stderr,
             "{}: say latency, bw, allreduce, barrier, bcast, reduce, gather, scatter, allgather or alltoall "
             "first\n",
             argv[0]);
  return bench::exit_usage;
}
