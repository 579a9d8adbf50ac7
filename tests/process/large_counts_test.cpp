// Sizes around 2^31, and one beyond 2^32, which needs 10 GB and a minute: only with VERBENA_TEST_LARGE=1.
#include "command.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <string>

using namespace verbena::tests;

namespace {

double available_gib() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("MemAvailable:", 0) == 0) return std::stod(line.substr(13)) / (1 << 20);
  return 0;
}

}  // namespace

TEST_CASE("messages of 2^31 bytes and more arrive whole, with and without single copy", "[large]") {
  const std::string way = GENERATE("auto", "off");
  const bool huge = std::getenv("VERBENA_TEST_LARGE") != nullptr;
  const double needed = huge ? 11 : 5;
  if (available_gib() < needed) {
    WARN("skipped: less than " << needed << " GiB of memory are free");
    return;
  }
  const std::string sizes = huge ? "5000000000" : "2147483647 2147483648 2147483649";
  const finished end =
      run("VERBENA_SINGLE_COPY=" + way + " launcher/rdmarun -q -n 2 tests/process/large_counts " + sizes,
          std::chrono::seconds(200));
  INFO(end.output << end.errors);
  CHECK(end.status == 0);
  for (const char* size : {"2147483647", "2147483648", "2147483649"})
    if (!huge) CHECK_THAT(end.output, Catch::Matchers::Contains(std::string(size) + " B are right"));
  if (huge) CHECK_THAT(end.output, Catch::Matchers::Contains("5000000000 B are right"));
}
