#include "collective.hpp"
#include "verbena_ranks.hpp"

int main(int argc, char** argv) {
  return bench::run<bench::verbena_ranks>(argc, argv, bench::kind::reduce, 1,
                                          bench::measure_collective<bench::verbena_ranks>);
}
