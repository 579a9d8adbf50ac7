#include "both_ways.hpp"
#include "verbena_ranks.hpp"

int main(int argc, char** argv) {
  return bench::run<bench::verbena_ranks>(argc, argv, bench::kind::both_ways, 2,
                                          bench::measure_both_ways<bench::verbena_ranks>);
}
