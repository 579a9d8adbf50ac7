// Placement over invented machines: properties that hold for every machine, policy, number of ranks and set
// of held cores, and the examples of the documentation.
#include "launcher/placement.hpp"

#include "launcher/topology.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace verbena::launcher;

namespace {

const std::vector<const char*> machines = {"pu:1",
                                           "pu:2",
                                           "core:2 pu:1",
                                           "core:2 pu:2",
                                           "pack:1 core:6 pu:1",
                                           "pack:2 core:2 pu:1",
                                           "pack:2 numa:1 core:4 pu:2",
                                           "pack:1 numa:4 core:2 pu:1",
                                           "pack:2 numa:2 core:3 pu:2"};

std::vector<unsigned> first(unsigned count) {
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  return cpus;
}

std::vector<processor> machine(const char* synthetic, unsigned cpus) {
  return wiring_of(first(cpus), synthetic);
}

unsigned cpus_of(const std::string& synthetic) {
  unsigned product = 1;
  for (std::size_t at = 0; (at = synthetic.find(':', at)) != std::string::npos; ++at)
    product *= static_cast<unsigned>(std::stoi(synthetic.substr(at + 1)));
  return product;
}

using cpu_list = std::vector<unsigned>;

void check_properties(const placement_request& asked) {
  const placement got = place(asked);
  const bool automatic = asked.policy == binding::automatic;
  std::map<unsigned, std::set<unsigned>> threads;  // of each core
  std::map<unsigned, processor> about;
  std::set<unsigned> held_cores;
  for (const processor& p : asked.processors) {
    threads[p.core].insert(p.cpu);
    about[p.cpu] = p;
    if (std::count(asked.held.begin(), asked.held.end(), p.cpu) != 0) held_cores.insert(p.core);
  }
  const std::size_t free = threads.size() - held_cores.size();
  REQUIRE(got.cores >= 1);
  REQUIRE(got.cores <= std::max(1U, asked.usable_cores));
  if (!got.bound()) {
    REQUIRE((asked.policy == binding::none || automatic));
    REQUIRE_FALSE(got.reason.empty());
    const bool fits = asked.ranks > 1 && asked.ranks <= free && asked.ranks <= asked.usable_cores;
    REQUIRE((asked.policy == binding::none || !fits));
    REQUIRE(got.cores == asked.usable_cores);
    return;
  }
  REQUIRE(got.cpus.size() == asked.ranks);
  std::map<cpu_list, unsigned> ranks_on;
  std::set<unsigned> used;
  for (const cpu_list& cpus : got.cpus) {
    REQUIRE_FALSE(cpus.empty());
    REQUIRE(std::is_sorted(cpus.begin(), cpus.end()));
    ++ranks_on[cpus];
    std::set<unsigned> cores, numas, sockets;
    for (const unsigned cpu : cpus) {
      REQUIRE(about.count(cpu) == 1);  // inside the mask
      cores.insert(about[cpu].core);
      numas.insert(about[cpu].numa);
      sockets.insert(about[cpu].socket);
    }
    std::size_t whole = 0;
    for (const unsigned core : cores) whole += threads[core].size();
    REQUIRE(whole == cpus.size());  // whole cores
    if (asked.ranks <= free) {
      for (const unsigned core : cores) REQUIRE(held_cores.count(core) == 0);
      REQUIRE_FALSE(got.shares_with_others);
    }
    if (asked.policy == binding::core) REQUIRE(cores.size() == 1);
    if (asked.policy == binding::numa) REQUIRE(numas.size() == 1);
    if (asked.policy == binding::socket) REQUIRE(sockets.size() == 1);
    for (const unsigned core : cores) {
      const bool new_core = used.insert(core).second;
      if (automatic) REQUIRE(new_core);
    }
  }
  if (automatic) REQUIRE(used.size() == free);  // no core is withheld from the job
  for (const auto& [cpus, ranks] : ranks_on) {
    std::set<unsigned> cores;
    for (const unsigned cpu : cpus) cores.insert(about[cpu].core);
    REQUIRE(std::min(ranks, got.cores) <= cores.size());  // so many can spin, wherever they sit
    if (asked.ranks <= free) REQUIRE(ranks <= cores.size());
    if (asked.policy == binding::core && asked.ranks > threads.size())
      REQUIRE(ranks <= (asked.ranks + threads.size() - 1) / threads.size());  // dealt evenly
  }
}

}  // namespace

TEST_CASE("no placement leaves the mask, splits a core or crowds one while another is idle") {
  std::mt19937 random{20};
  for (const char* synthetic : machines) {
    const unsigned cpus = cpus_of(synthetic);
    const auto processors = machine(synthetic, cpus);
    REQUIRE(processors.size() == cpus);
    for (const binding policy :
         {binding::automatic, binding::none, binding::core, binding::numa, binding::socket})
      for (unsigned ranks = 1; ranks <= 2 * cpus + 1; ++ranks)
        for (int variant = 0; variant < 6; ++variant) {
          placement_request asked{
              policy, ranks, {},
              0,      {},    variant == 3 ? mapping::numa : variant == 4 ? mapping::core : mapping::slot};
          for (const processor& p : processors)
            if (variant < 2 || random() % 3 != 0) asked.processors.push_back(p);
          if (asked.processors.empty()) asked.processors.push_back(processors[0]);
          if (variant % 2 == 1)
            for (const processor& p : processors)
              if (random() % 3 == 0) asked.held.push_back(p.cpu);
          const auto mask = static_cast<unsigned>(asked.processors.size());
          asked.usable_cores = variant == 5 ? 1 + static_cast<unsigned>(random() % mask) : mask;
          INFO(synthetic << ", policy " << static_cast<int>(policy) << ", " << ranks << " ranks, variant "
                         << variant);
          check_properties(asked);
        }
  }
}

TEST_CASE("automatic: each rank its share of the cores, neighbours together") {
  const auto small = machine("core:2 pu:1", 2);
  CHECK(place({binding::automatic, 2, small, 2, {}}).cpus == std::vector<cpu_list>{{0}, {1}});
  CHECK(place({binding::automatic, 2, small, 2, {}}).cores == 2);
  const auto sockets = machine("pack:2 numa:1 core:2 pu:2", 8);
  CHECK(place({binding::automatic, 2, sockets, 8, {}}).cpus ==
        std::vector<cpu_list>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(place({binding::automatic, 4, sockets, 8, {}}).cpus ==
        std::vector<cpu_list>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK_FALSE(place({binding::automatic, 8, sockets, 8, {}}).bound());  // two threads of a core are one core
}

TEST_CASE("automatic leaves alone: one rank, too many ranks, a small quota, cores that others hold") {
  const auto four = machine("core:4 pu:1", 4);
  CHECK_FALSE(place({binding::automatic, 1, four, 4, {}}).bound());
  CHECK_FALSE(place({binding::automatic, 5, four, 4, {}}).bound());
  CHECK_FALSE(place({binding::automatic, 3, four, 2, {}}).bound());
  CHECK(place({binding::automatic, 3, four, 2, {}}).cores == 2);
  CHECK(place({binding::automatic, 2, four, 4, {0, 1}}).cpus == std::vector<cpu_list>{{2}, {3}});
  const placement crowded = place({binding::automatic, 3, four, 4, {0, 1}});
  CHECK_FALSE(crowded.bound());
  CHECK(crowded.reason == "another job holds the cores");
}

TEST_CASE("core, numa and socket bind where they are told to, held cores last") {
  const auto processors = machine("pack:2 numa:1 core:2 pu:2", 8);
  CHECK(place({binding::core, 3, processors, 8, {}}).cpus == std::vector<cpu_list>{{0, 1}, {2, 3}, {4, 5}});
  CHECK(place({binding::core, 2, processors, 8, {0}}).cpus == std::vector<cpu_list>{{2, 3}, {4, 5}});
  CHECK(place({binding::socket, 2, processors, 8, {}}).cpus ==
        std::vector<cpu_list>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(place({binding::socket, 2, processors, 8, {2}}).cpus == std::vector<cpu_list>{{0, 1}, {4, 5, 6, 7}});
  CHECK(place({binding::numa, 1, processors, 8, {}}).cpus == std::vector<cpu_list>{{0, 1, 2, 3}});
  const auto domains = machine("pack:1 numa:2 core:2 pu:1", 4);
  CHECK(place({binding::numa, 2, domains, 4, {}}).cpus == std::vector<cpu_list>{{0, 1}, {2, 3}});
  const placement shared = place({binding::core, 4, processors, 8, {0}});
  CHECK(shared.bound());
  CHECK(shared.shares_with_others);
}

TEST_CASE("mapped by numa, consecutive ranks lie in different domains; by core, on consecutive cores") {
  const auto processors = machine("pack:2 numa:1 core:2 pu:2", 8);
  const cpu_list first{0, 1, 2, 3}, second{4, 5, 6, 7};
  CHECK(place({binding::numa, 4, processors, 8, {}}).cpus ==
        std::vector<cpu_list>{first, first, second, second});
  CHECK(place({binding::numa, 4, processors, 8, {}, mapping::numa}).cpus ==
        std::vector<cpu_list>{first, second, first, second});
  CHECK(place({binding::core, 3, processors, 8, {}, mapping::numa}).cpus ==
        std::vector<cpu_list>{{0, 1}, {4, 5}, {2, 3}});
  CHECK(place({binding::core, 3, processors, 8, {}, mapping::core}).cpus ==
        std::vector<cpu_list>{{0, 1}, {2, 3}, {4, 5}});
  CHECK(place({binding::numa, 2, processors, 8, {}, mapping::core}).cpus ==
        std::vector<cpu_list>{first, first});
  CHECK(place({binding::numa, 2, processors, 8, {}}).cpus == std::vector<cpu_list>{first, second});
  // A domain of which another job holds a core has room for one rank less, and is passed over when that is used up.
  CHECK(place({binding::core, 3, processors, 8, {0}, mapping::numa}).cpus ==
        std::vector<cpu_list>{{2, 3}, {4, 5}, {6, 7}});
  CHECK(place({binding::core, 5, processors, 8, {}, mapping::numa}).cpus ==
        std::vector<cpu_list>{{0, 1}, {4, 5}, {2, 3}, {6, 7}, {0, 1}});
}

TEST_CASE("ranks that share a core are not counted on to spin beside each other") {
  const auto two = machine("core:2 pu:1", 2);
  const placement three = place({binding::core, 3, two, 2, {}});
  CHECK(three.cpus == std::vector<cpu_list>{{0}, {0}, {1}});
  CHECK(three.cores == 1);
  CHECK(place({binding::core, 2, two, 2, {}}).cores == 2);
  CHECK(place({binding::core, 1, two, 2, {}}).cores == 1);
}

TEST_CASE("processors that the topology does not know are cores of their own") {
  const auto processors = wiring_of({0, 1, 7, 9}, "core:1 pu:2");
  REQUIRE(processors.size() == 4);
  CHECK(processors[0].core == processors[1].core);
  CHECK(std::set<unsigned>{processors[0].core, processors[2].core, processors[3].core}.size() == 3);
  CHECK(wiring_of({0, 1}, "complete nonsense").size() == 2);
}

TEST_CASE("sets of processors and localities in words") {
  CHECK(describe_cpus({}).empty());
  CHECK(describe_cpus({3}) == "3");
  CHECK(describe_cpus({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  const auto processors = machine("pack:2 numa:1 core:2 pu:2", 8);
  CHECK(locality_of({4, 5, 6, 7}, processors) == "hwloc:SK1:NM1:CR2-3:HT4-7");
  CHECK(describe_place({4, 5, 6, 7}, processors) == "processors 4-7: cores 2-3, numa domain 1, socket 1");
  CHECK(describe_place({2}, machine("pu:4", 4)) == "processor 2: core 2, numa domain 0, socket 0");
}

TEST_CASE("the words of other launchers are understood, or refused in one sentence") {
  binding got = binding::automatic;
  for (const auto& [text, means] :
       {std::pair{"core", binding::core}, std::pair{"socket", binding::socket},
        std::pair{"package", binding::socket}, std::pair{"numa", binding::numa},
        std::pair{"none", binding::none}, std::pair{"board", binding::none},
        std::pair{"machine", binding::none}, std::pair{"auto", binding::automatic},
        std::pair{"core:overload-allowed", binding::core},
        std::pair{"socket:if-supported", binding::socket}}) {
    INFO(text);
    CHECK(parse_binding(text, got).empty());
    CHECK(got == means);
  }
  for (const char* text : {"hwthread", "l3cache", "l2cache", "user:0,1", "rr", "core:2", "corex", "", ":"}) {
    INFO(text);
    const std::string sentence = parse_binding(text, got);
    CHECK(sentence.find("option '--bind") == 0);
    CHECK(sentence.find('\n') == std::string::npos);
  }
  CHECK(parse_binding("hwthread", got).find("use core") != std::string::npos);
}
