#include "bandwidth.hpp"
#include "verbena_ranks.hpp"

int main(int argc, char** argv) {
  return bench::run<bench::verbena_ranks>(argc, argv, bench::kind::bandwidth, 2,
                                          bench::measure_bandwidth<bench::verbena_ranks>);
}
