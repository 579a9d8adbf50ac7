#include "launcher/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace verbena::launcher {
namespace {

/// A core and its processors, with the domain in which the policy counts.
struct core_unit {
  unsigned socket, numa, core;
  std::vector<unsigned> cpus;
};

/// Cores in machine order. A core of which another job holds a thread is held.
std::vector<core_unit> cores_of(const placement_request& request, bool free_only) {
  std::map<unsigned, core_unit> by_core;
  std::map<unsigned, bool> held;
  for (const processor& p : request.processors) {
    core_unit& unit = by_core.try_emplace(p.core, core_unit{p.socket, p.numa, p.core, {}}).first->second;
    unit.cpus.push_back(p.cpu);
    if (std::find(request.held.begin(), request.held.end(), p.cpu) != request.held.end()) held[p.core] = true;
  }
  std::vector<core_unit> units;
  for (auto& [core, unit] : by_core) {
    if (free_only && held.count(core) != 0) continue;
    std::sort(unit.cpus.begin(), unit.cpus.end());
    units.push_back(std::move(unit));
  }
  std::sort(units.begin(), units.end(), [](const core_unit& a, const core_unit& b) {
    return std::tuple{a.socket, a.numa, a.core} < std::tuple{b.socket, b.numa, b.core};
  });
  return units;
}

std::vector<unsigned> join(const std::vector<core_unit>& units, std::size_t begin, std::size_t end) {
  std::vector<unsigned> cpus;
  for (std::size_t i = begin; i < end; ++i)
    cpus.insert(cpus.end(), units[i].cpus.begin(), units[i].cpus.end());
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

/// All cores of the domain in which `units[at]` lies.
std::vector<unsigned> domain_of(const std::vector<core_unit>& units, std::size_t at, binding policy) {
  std::vector<unsigned> cpus;
  for (const core_unit& unit : units)
    if (policy == binding::socket
            ? unit.socket == units[at].socket
            : std::pair{unit.socket, unit.numa} == std::pair{units[at].socket, units[at].numa})
      cpus.insert(cpus.end(), unit.cpus.begin(), unit.cpus.end());
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

/// Where each rank begins, as an index of `units`.
std::vector<std::size_t> origins(const placement_request& request, const std::vector<core_unit>& units) {
  const std::size_t ranks = request.ranks, cores = units.size();
  std::vector<std::size_t> begin;
  if (request.map == mapping::numa) {
    std::map<std::pair<unsigned, unsigned>, std::vector<std::size_t>> domains;
    for (std::size_t i = 0; i < cores; ++i) domains[{units[i].socket, units[i].numa}].push_back(i);
    // Core by core of every domain that has so many, and again from the first on for more ranks than cores.
    while (begin.size() < ranks)
      for (std::size_t nth = 0; nth < cores; ++nth)
        for (const auto& [domain, its] : domains)
          if (nth < its.size() && begin.size() < ranks) begin.push_back(its[nth]);
    return begin;
  }
  const bool next = ranks <= cores && (request.map == mapping::core || request.policy == binding::core);
  for (std::size_t r = 0; r < ranks; ++r) begin.push_back(next ? r : r * cores / ranks);
  return begin;
}

/// Ranks may spin as long as no more are awake than this: then no two of them share a core, wherever they
/// sit.
unsigned spinning_cores(const std::vector<std::vector<unsigned>>& cpus, const std::vector<core_unit>& units) {
  std::map<std::vector<unsigned>, unsigned> ranks_on;
  for (const auto& set : cpus) ++ranks_on[set];
  unsigned all = 0, least = 0;
  for (const auto& [set, ranks] : ranks_on) {
    unsigned cores = 0;
    for (const core_unit& unit : units)
      cores += std::binary_search(set.begin(), set.end(), unit.cpus.front()) ? 1U : 0U;
    all += cores;
    if (ranks > cores) least = least == 0 ? cores : std::min(least, cores);
  }
  return least != 0 ? least : all;
}

/// The cores, domains and sockets of some processors, each ascending and once.
struct whereabouts {
  std::vector<unsigned> cores, numas, sockets;
};

whereabouts whereabouts_of(const std::vector<unsigned>& cpus, const std::vector<processor>& processors) {
  whereabouts found;
  for (const processor& p : processors) {
    if (!std::binary_search(cpus.begin(), cpus.end(), p.cpu)) continue;
    found.cores.push_back(p.core);
    found.numas.push_back(p.numa);
    found.sockets.push_back(p.socket);
  }
  for (auto* numbers : {&found.cores, &found.numas, &found.sockets}) {
    std::sort(numbers->begin(), numbers->end());
    numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
  }
  return found;
}

placement unbound(const placement_request& request, std::string reason) {
  return {{}, std::move(reason), false, std::max(1U, request.usable_cores)};
}

}  // namespace

placement place(const placement_request& request) {
  const unsigned ranks = request.ranks;
  const bool automatic = request.policy == binding::automatic;
  if (request.policy == binding::none) return unbound(request, "not asked for");
  if (request.processors.empty()) return unbound(request, "the processors of this machine are not known");
  if (automatic && ranks == 1) return unbound(request, "a single rank may have threads on all cores");
  if (automatic && ranks > request.usable_cores) return unbound(request, "more ranks than cores");
  std::vector<core_unit> units = cores_of(request, true);
  std::string reason;
  bool shared = false;
  if (ranks > units.size()) {
    const std::vector<core_unit> all = cores_of(request, false);
    const bool others = units.size() < all.size();
    reason = others ? "another job holds the cores" : "more ranks than cores";
    if (automatic) return unbound(request, reason);
    shared = others;
    if (others) reason = "some cores are shared with another job";
    units = all;
  }

  placement result;
  result.reason = reason;
  result.shares_with_others = shared;
  const std::size_t cores = units.size();
  const std::vector<std::size_t> begin = origins(request, units);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (automatic)
      result.cpus.push_back(join(units, r * cores / ranks, (r + 1) * cores / ranks));
    else if (request.policy == binding::core)
      result.cpus.push_back(units[begin[r]].cpus);
    else
      result.cpus.push_back(domain_of(units, begin[r], request.policy));
  }
  result.cores = std::max(1U, std::min(request.usable_cores, spinning_cores(result.cpus, units)));
  return result;
}

std::string describe_cpus(const std::vector<unsigned>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

std::string locality_of(const std::vector<unsigned>& cpus, const std::vector<processor>& processors) {
  const whereabouts its = whereabouts_of(cpus, processors);
  return fmt::format("hwloc:SK{}:NM{}:CR{}:HT{}", describe_cpus(its.sockets), describe_cpus(its.numas),
                     describe_cpus(its.cores), describe_cpus(cpus));
}

std::string describe_place(const std::vector<unsigned>& cpus, const std::vector<processor>& processors) {
  const whereabouts its = whereabouts_of(cpus, processors);
  const auto say = [](const char* one, const char* many, const std::vector<unsigned>& numbers) {
    return fmt::format("{} {}", numbers.size() == 1 ? one : many, describe_cpus(numbers));
  };
  return fmt::format("{}: {}, {}, {}", say("processor", "processors", cpus), say("core", "cores", its.cores),
                     say("numa domain", "numa domains", its.numas), say("socket", "sockets", its.sockets));
}

std::string parse_binding(std::string_view text, binding& into) {
  struct word {
    std::string_view name;
    binding means;
  };
  static constexpr std::array<word, 9> words = {{{"auto", binding::automatic},
                                                 {"core", binding::core},
                                                 {"socket", binding::socket},
                                                 {"package", binding::socket},
                                                 {"numa", binding::numa},
                                                 {"none", binding::none},
                                                 {"board", binding::none},
                                                 {"machine", binding::none},
                                                 {"node", binding::none}}};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  // Open MPI's qualifiers say what is so anyway: cores may be shared, and a machine without them is no error.
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view qualifier = rest.substr(0, comma);
    if (qualifier != "overload-allowed" && qualifier != "overload" && qualifier != "if-supported")
      return fmt::format(
          "option '--bind {}': '{}' is not known here; core, socket, numa, none or auto stands alone", text,
          qualifier);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  for (const word& each : words)
    if (each.name == name) {
      into = each.means;
      return {};
    }
  constexpr std::string_view finer[] = {"hwthread", "l1cache", "l2cache"};
  constexpr std::string_view coarser[] = {"l3cache", "l4cache", "l5cache"};
  const auto among = [name](const auto& list) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  if (among(finer)) return fmt::format("option '--bind {}': ranks get whole cores here; use core", text);
  if (among(coarser))
    return fmt::format("option '--bind {}': caches are not told apart here; use numa or socket", text);
  if (name == "user" || name == "rr")
    return fmt::format(
        "option '--bind {}': for places of your own start each rank through taskset, with --bind none", text);
  return fmt::format("option '--bind' takes core, socket, numa, none or auto, not '{}'", text);
}

}  // namespace verbena::launcher
