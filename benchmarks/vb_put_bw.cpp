#include "one_sided.hpp"
#include "verbena_ranks.hpp"

int main(int argc, char** argv) {
  return bench::run<bench::verbena_ranks>(argc, argv, bench::kind::put_bandwidth, 2,
                                          bench::measure_one_sided<bench::verbena_ranks>);
}
