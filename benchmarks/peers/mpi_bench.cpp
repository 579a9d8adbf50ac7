// The benchmarks over MPI, as one program: its first word says which (latency, bw, allreduce, barrier, ...),
// the rest are the options of vb_*.
#include "mpi_ranks.hpp"

#include "allreduce.hpp"
#include "bandwidth.hpp"
#include "both_ways.hpp"
#include "collective.hpp"
#include "latency.hpp"
#include "one_sided.hpp"
#include "pairs.hpp"

#include <string_view>

namespace {

using bench::kind;
using bench::mpi_ranks;

struct benchmark {
  std::string_view name;
  kind what;
  int ranks;  ///< it needs
  void (*measure)(mpi_ranks&, const bench::options&);
};

constexpr benchmark all[] = {{"latency", kind::latency, 2, bench::measure_latency<mpi_ranks>},
                             {"bw", kind::bandwidth, 2, bench::measure_bandwidth<mpi_ranks>},
                             {"bibw", kind::both_ways, 2, bench::measure_both_ways<mpi_ranks>},
                             {"mbw_mr", kind::pairs_bandwidth, 2, bench::measure_pairs_bandwidth<mpi_ranks>},
                             {"multi_lat", kind::pairs_latency, 2, bench::measure_pairs_latency<mpi_ranks>},
                             {"put_latency", kind::put_latency, 2, bench::measure_one_sided<mpi_ranks>},
                             {"get_latency", kind::get_latency, 2, bench::measure_one_sided<mpi_ranks>},
                             {"put_bw", kind::put_bandwidth, 2, bench::measure_one_sided<mpi_ranks>},
                             {"get_bw", kind::get_bandwidth, 2, bench::measure_one_sided<mpi_ranks>},
                             {"allreduce", kind::allreduce, 1, bench::measure_allreduce<mpi_ranks>},
                             {"barrier", kind::barrier, 1, bench::measure_collective<mpi_ranks>},
                             {"bcast", kind::broadcast, 1, bench::measure_collective<mpi_ranks>},
                             {"reduce", kind::reduce, 1, bench::measure_collective<mpi_ranks>},
                             {"gather", kind::gather, 1, bench::measure_collective<mpi_ranks>},
                             {"scatter", kind::scatter, 1, bench::measure_collective<mpi_ranks>},
                             {"allgather", kind::allgather, 1, bench::measure_collective<mpi_ranks>},
                             {"alltoall", kind::alltoall, 1, bench::measure_collective<mpi_ranks>}};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  std::string names;
  for (const benchmark& one : all) {
    if (one.name == name) return bench::run<mpi_ranks>(argc - 1, argv + 1, one.what, one.ranks, one.measure);
    names += " ";
    names += one.name;
  }
  fmt::print(stderr, "{}: the first word must be one of{}\n", argv[0], names);
  return bench::exit_usage;
}
