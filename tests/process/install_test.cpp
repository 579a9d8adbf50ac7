// What `meson install` leaves is complete: a program is built against it by pkg-config and by CMake, and the
// installed programs run, for root and for others, also when the tree has been moved.
#include "command.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace verbena::tests;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// Runs what must succeed; returns what it printed.
std::string must(const std::string& command) {
  INFO(command);
  const finished end = run(command, std::chrono::seconds(100));
  INFO(end.output << end.errors);
  REQUIRE(end.status == 0);
  return end.output;
}

/// Installs into a new tree below `folder`; returns its prefix.
std::string install(const std::string& folder) {
  must(fmt::format("meson install -C {} --no-rebuild --quiet --destdir {}", build_root(), folder));
  return folder + VERBENA_PREFIX;
}

/// The program that README.md shows, as `folder`/hello.cpp.
void write_program_of_the_readme(const std::string& folder) {
  std::ifstream file(source_root() + "/README.md");
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const std::string fence = "```cpp\n";
  const auto begin = text.find(fence);
  REQUIRE(begin != std::string::npos);
  const auto end = text.find("```", begin + fence.size());
  std::ofstream(folder + "/hello.cpp") << text.substr(begin + fence.size(), end - begin - fence.size());
}

constexpr const char* hello_of_three = "3 ranks, the sum of 1 to 3 is 6\n";

}  // namespace

TEST_CASE("the README's program builds with pkg-config and runs", "[install]") {
  const scratch_folder folder;
  const std::string prefix = install(folder.path());
  write_program_of_the_readme(folder.path());
  const std::string libdir = prefix + "/" VERBENA_LIBDIR;
  const std::string config = fmt::format(
      "PKG_CONFIG_PATH={}/pkgconfig pkg-config --define-variable=prefix={} verbena", libdir, prefix);
  must(fmt::format(
      "cd {} && g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror hello.cpp -o hello $({} --cflags --libs)",
      folder.path(), config));
  const std::string run_it = fmt::format("LD_LIBRARY_PATH={} ", libdir);
  CHECK(must(run_it + prefix + "/bin/rdmarun -n 3 " + folder.path() + "/hello") == hello_of_three);
  CHECK(must(run_it + folder.path() + "/hello") == "1 ranks, the sum of 1 to 1 is 1\n");
  CHECK(must(config + " --modversion") == VERBENA_VERSION "\n");
}

TEST_CASE("the README's program builds with CMake and runs", "[install]") {
  const scratch_folder folder;
  const std::string prefix = install(folder.path());
  write_program_of_the_readme(folder.path());
  std::ofstream(folder.path() + "/CMakeLists.txt") << "cmake_minimum_required(VERSION 3.20)\n"
                                                      "project(hello CXX)\n"
                                                      "find_package(verbena 0.1 REQUIRED)\n"
                                                      "add_executable(hello hello.cpp)\n"
                                                      "target_link_libraries(hello verbena::verbena)\n";
  must(fmt::format("cd {} && cmake -S . -B b -DCMAKE_PREFIX_PATH={} && cmake --build b", folder.path(),
                   prefix));
  CHECK(must(fmt::format("{}/bin/rdmarun -n 3 {}/b/hello", prefix, folder.path())) == hello_of_three);

  std::ofstream(folder.path() + "/CMakeLists.txt") << "cmake_minimum_required(VERSION 3.20)\n"
                                                      "project(hello CXX)\n"
                                                      "find_package(verbena 0.2 REQUIRED)\n";
  const finished newer =
      run(fmt::format("cd {} && cmake -S . -B c -DCMAKE_PREFIX_PATH={}", folder.path(), prefix));
  CHECK(newer.status != 0);
  CHECK_THAT(newer.errors, Contains("verbenaConfig.cmake, version: " VERBENA_VERSION));
}

TEST_CASE("the installed programs run from a moved tree, for root and for others", "[install]") {
  const scratch_folder folder;
  const std::string moved = folder.path() + "/elsewhere";
  std::filesystem::rename(install(folder.path() + "/first"), moved);
  const std::string job = fmt::format("{0}/bin/rdmarun -n 2 {0}/bin/", moved);
  for (const std::string who :
       {"", "setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "}) {
    if (!who.empty() && ::geteuid() != 0) continue;  // then the first round was the one of another user
    const std::string from = "cd / && " + who;
    CHECK_THAT(must(from + job + "vb_latency -m 8:64k -i 100 -c"), Contains("\n65536 "));
    CHECK_THAT(must(from + job + "vb_bw -m 8:64k -i 10 -c"), Contains("\n65536 "));
    CHECK_THAT(must(from + job + "vb_allreduce -m 8:64k -i 100 -c"), Contains("\n65536 "));
  }
}

TEST_CASE("the library shows names of verbena and no other", "[install]") {
  const std::string listing = must("nm -DC --defined-only libverbena.so");
  std::istringstream lines(listing);
  int shown = 0;
  for (std::string line; std::getline(lines, line); ++shown) {
    const std::string name = line.substr(19);  // address, type
    const bool ours = name.rfind("verbena::", 0) == 0 || name.find(" for verbena::") != std::string::npos;
    CHECKED_ELSE(ours) {
      CHECK(name == "a name of namespace verbena");
    }
    CHECK(name.find("verbena::base::") == std::string::npos);
  }
  CHECK(shown > 20);
  CHECK_THAT(must("readelf -d libverbena.so"), Contains("[libverbena.so.0]"));
}
