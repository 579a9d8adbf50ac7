#include "pairs.hpp"
#include "verbena_ranks.hpp"

int main(int argc, char** argv) {
  return bench::run<bench::verbena_ranks>(argc, argv, bench::kind::pairs_bandwidth, 2,
                                          bench::measure_pairs_bandwidth<bench::verbena_ranks>);
}
