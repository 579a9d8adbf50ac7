#include "allreduce.hpp"
#include "verbena_ranks.hpp"

int main(int argc, char** argv) {
  return bench::run<bench::verbena_ranks>(argc, argv, bench::kind::allreduce, 1,
                                          bench::measure_allreduce<bench::verbena_ranks>);
}
