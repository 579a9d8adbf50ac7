#include "base/cores.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace verbena::base;

namespace {

/// A made-up tree of control groups.
class groups {
 public:
  groups() : root_(fmt::format("/tmp/verbena-cores-{}", ::getpid())) {}
  groups(const groups&) = delete;
  groups& operator=(const groups&) = delete;
  ~groups() { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text << '\n';
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace

TEST_CASE("a quota of version 2 is the smallest on the way to the root") {
  const groups tree;
  tree.write("/a/b/cpu.max", "max 100000");
  CHECK_FALSE(cpu_quota("0::/a/b\n", tree.root()).has_value());
  tree.write("/a/b/cpu.max", "300000 100000");
  CHECK(cpu_quota("0::/a/b\n", tree.root()) == 3.0);
  tree.write("/a/cpu.max", "50000 100000");
  CHECK(cpu_quota("0::/a/b\n", tree.root()) == 0.5);
  CHECK_FALSE(cpu_quota("0::/\n", tree.root()).has_value());
}

TEST_CASE("a quota of version 1 is found under either name of its mount") {
  const groups tree;
  tree.write("/cpu/x/cpu.cfs_quota_us", "150000");
  tree.write("/cpu/x/cpu.cfs_period_us", "100000");
  CHECK(cpu_quota("5:memory:/m\n2:cpu:/x\n0::/\n", tree.root()) == 1.5);
  tree.write("/cpu,cpuacct/y/cpu.cfs_quota_us", "200000");
  tree.write("/cpu,cpuacct/y/cpu.cfs_period_us", "100000");
  CHECK(cpu_quota("2:cpu,cpuacct:/y\n", tree.root()) == 2.0);
  tree.write("/cpu/z/cpu.cfs_quota_us", "-1");
  tree.write("/cpu/z/cpu.cfs_period_us", "100000");
  CHECK_FALSE(cpu_quota("2:cpu:/z\n", tree.root()).has_value());
  CHECK_FALSE(cpu_quota("2:cpuset:/x\n", tree.root()).has_value());
}

TEST_CASE("in a container, where the host's path is not to be seen, the mounted root counts") {
  const groups tree;
  tree.write("/cpu.max", "200000 100000");
  CHECK(cpu_quota("0::/host/only/path\n", tree.root()) == 2.0);
}

TEST_CASE("nonsense is no quota") {
  const groups tree;
  tree.write("/a/cpu.max", "lots of it");
  for (const char* text : {"", "0", "0:", "0::", "0::/a", ":::::", "0::/../..", "2:cpu"}) {
    INFO(text);
    CHECK_FALSE(cpu_quota(text, tree.root()).has_value());
  }
}

TEST_CASE("the mask is what the scheduler says") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(mask_cores() == static_cast<unsigned>(CPU_COUNT(&before)));
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(mask_cores() == 1);
  CHECK(usable_cores() == 1);
  ::sched_setaffinity(0, sizeof before, &before);
}
