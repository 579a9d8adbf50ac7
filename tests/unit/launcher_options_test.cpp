#include "launcher/options.hpp"

#include <catch2/catch.hpp>

using namespace verbena::launcher;

namespace {

options good(const std::vector<std::string>& arguments) {
  options how;
  CHECK(parse_options(arguments, how) == "");
  return how;
}

std::string wrong(const std::vector<std::string>& arguments) {
  options how;
  return parse_options(arguments, how);
}

}  // namespace

TEST_CASE("the number of ranks in every spelling") {
  for (const std::vector<std::string>& spelled : {std::vector<std::string>{"-n", "4"},
                                                  {"-np", "4"},
                                                  {"--np", "4"},
                                                  {"-n4"},
                                                  {"-n=4"},
                                                  {"-np=4"},
                                                  {"--np=4"}}) {
    auto arguments = spelled;
    arguments.emplace_back("prog");
    INFO(spelled[0]);
    CHECK(good(arguments).programs.at(0).count == 4U);
  }
  CHECK_FALSE(good({"prog"}).programs.at(0).count.has_value());
}

TEST_CASE("everything after the program is the program's") {
  const options how = good({"-n", "2", "prog", "-n", "7", "--tag", "-np", "--nosuch", "--", "x"});
  CHECK(how.programs.at(0).count == 2U);
  CHECK_FALSE(how.tag);
  CHECK(how.programs.at(0).arguments ==
        std::vector<std::string>{"prog", "-n", "7", "--tag", "-np", "--nosuch", "--", "x"});
  CHECK(good({"--", "-odd"}).programs.at(0).arguments == std::vector<std::string>{"-odd"});
}

TEST_CASE("values and switches arrive") {
  const options how =
      good({"--wdir", "/d", "-x", "A=b c", "--env=B=2", "-x", "C", "--fabric=shm,self", "--timeout", "1.5",
            "--grace=2", "--abort-grace", "0", "--explain", "--tag", "-q", "-v", "p"});
  CHECK(how.directory == "/d");
  CHECK(how.variables == std::vector<std::string>{"A=b c", "B=2", "C"});
  CHECK(how.fabric == "shm,self");
  CHECK(how.timeout_s == 1.5);
  CHECK(how.grace_s == 2);
  CHECK(how.abort_grace_s == 0);
  CHECK((how.explain && how.tag && how.quiet && how.verbose));
  const options network = good({"--interface=eth0,fd00::/8", "--port-range", "5000:5009", "--link-timeout", "3", "p"});
  CHECK(network.interface == "eth0,fd00::/8");
  CHECK(network.port_range == "5000:5009");
  CHECK(network.link_timeout == "3");
  const options plain = good({"p"});
  CHECK(plain.grace_s == 5);
  CHECK(plain.abort_grace_s == 0.5);
  CHECK_FALSE(plain.timeout_s.has_value());
}

TEST_CASE("an unknown option is an error, never the program") {
  CHECK(wrong({"--nosuch", "prog"}).find("unknown option '--nosuch'") != std::string::npos);
  CHECK(wrong({"-Z", "prog"}).find("unknown option '-Z'") != std::string::npos);
  CHECK(wrong({"--timout", "3", "prog"}).find("did you mean '--timeout'") != std::string::npos);
}

TEST_CASE("wrong values are named") {
  CHECK(wrong({}).find("no program") != std::string::npos);
  CHECK(wrong({"-n"}).find("'-n' needs a value") != std::string::npos);
  CHECK(wrong({"-n", "0", "p"}).find("from 1 on, not 0") != std::string::npos);
  CHECK(wrong({"-n", "-3", "p"}).find("-3") != std::string::npos);
  CHECK_FALSE(wrong({"-n", "two", "p"}).empty());
  CHECK_FALSE(wrong({"--timeout", "-1", "p"}).empty());
  CHECK_FALSE(wrong({"--timeout", "nan", "p"}).empty());
  CHECK(wrong({"--fabric", "shm,warp", "p"}).find("no fabric 'warp'") != std::string::npos);
  CHECK_FALSE(wrong({"--tag=3", "p"}).empty());
  CHECK(wrong({"--interface", "10.0.0.0/40", "p"}).find("not '10.0.0.0/40'") != std::string::npos);
  CHECK(wrong({"--port-range", "9:8", "p"}).find("LOW:HIGH, not '9:8'") != std::string::npos);
  for (const char* seconds : {"0", "-1", "1.5", "86401", "ten"})
    CHECK(wrong({"--link-timeout", seconds, "p"}).find("from 1 to 86400") != std::string::npos);
}

TEST_CASE("questions need no program") {
  CHECK(good({"--help"}).what == action::help);
  CHECK(good({"--help", "status"}).what == action::help_status);
  CHECK(good({"--version"}).what == action::version);
  CHECK(good({"--settings"}).what == action::settings);
}

TEST_CASE("several programs share one job, each with its own number of ranks") {
  const options how = good({"-n", "2", "a", "x", ":", "-np", "3", "b", ":", "c"});
  REQUIRE(how.programs.size() == 3);
  CHECK(how.programs[1].arguments == std::vector<std::string>{"b"});
  CHECK(programs_of_ranks(how, 8) == std::vector<std::uint32_t>{0, 0, 1, 1, 1, 2});
  CHECK(wrong({"a", ":"}).find("no program beside") != std::string::npos);
  CHECK(wrong({"a", ":", "--tag", "b"}).find("only '-n N'") != std::string::npos);
  CHECK(wrong({"a", ":", "-n", "0", "b"}).find("from 1 on") != std::string::npos);
}

TEST_CASE("the size of the job comes from -n, else the slots, else the cores") {
  CHECK(job_size(good({"p"}), 6) == 6);
  CHECK(job_size(good({"-H", "localhost:8,localhost", "p"}), 6) == 9);
  CHECK(job_size(good({"-H", "localhost:8", "-n", "3", "p"}), 6) == 3);
  CHECK(good({"-H", "fd00:91::2,[fd00:91::3]:4,[::1]", "p"}).hosts.at(0).name == "fd00:91::2");
  CHECK(good({"-H", "fd00:91::2,[fd00:91::3]:4,[::1]", "p"}).hosts.at(1).name == "fd00:91::3");
  CHECK(job_size(good({"-H", "fd00:91::2,[fd00:91::3]:4,[::1]", "p"}), 6) == 6);
  CHECK(wrong({"-H", "[fd00::1]4", "p"}).find("NAME:SLOTS") != std::string::npos);
  CHECK(wrong({"-H", "[]:4", "p"}).find("NAME:SLOTS") != std::string::npos);
  CHECK(wrong({"-H", "a:0", "p"}).find("NAME:SLOTS") != std::string::npos);
  CHECK(wrong({"-H", ":3", "p"}).find("NAME:SLOTS") != std::string::npos);
}

TEST_CASE("the standard input goes to one rank or to none") {
  CHECK(good({"p"}).input_rank == 0);
  CHECK(good({"--stdin", "3", "p"}).input_rank == 3);
  CHECK(good({"--stdin=none", "p"}).input_rank == -1);
  CHECK_FALSE(wrong({"--stdin", "some", "p"}).empty());
}
