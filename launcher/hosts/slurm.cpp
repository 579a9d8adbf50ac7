#include "launcher/hosts/slurm.hpp"

#include "base/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace verbena::launcher {
namespace {

/// More than any list that is meant so; a range of 2^32 must not become as many names.
constexpr std::size_t most_hosts = 65536;

/// Calls `each` with the parts between commas; brackets, if they count, keep theirs together. Stops at the first sentence.
template <class Each>
std::string for_each_part(std::string_view list, bool brackets, const Each& each) {
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && (inside || list[i] != ',')) {
      if (brackets) inside = list[i] == '[' || (inside && list[i] != ']');
      continue;
    }
    if (std::string wrong = each(list.substr(begin, i - begin)); !wrong.empty()) return wrong;
    begin = i + 1;
  }
  return {};
}

/// "01-03,7" as 01, 02, 03, 7: a range is as wide as its first number.
std::string expand_numbers(std::string_view list, std::vector<std::string>& into) {
  return for_each_part(list, false, [&](std::string_view part) -> std::string {
    const std::size_t dash = std::min(part.find('-'), part.size());
    const std::string_view begin = part.substr(0, dash);
    std::uint32_t first = 0, last = 0;
    const bool good = begin.size() <= 16 && base::parse_number(begin, first) &&
                      (dash == part.size() ? base::parse_number(begin, last)
                                           : base::parse_number(part.substr(dash + 1), last));
    if (!good || last < first) return fmt::format("'{}' is no number and no range", part);
    if (last - first >= most_hosts || into.size() >= most_hosts)
      return fmt::format("'{}' are too many", part);
    for (std::uint64_t i = first; i <= last; ++i) into.push_back(fmt::format("{:0>{}}", i, begin.size()));
    return {};
  });
}

/// One name with any number of brackets.
std::string expand_name(std::string_view pattern, std::vector<std::string>& into) {
  std::vector<std::string> names = {""};
  for (std::string_view rest = pattern; !rest.empty();) {
    const std::size_t open = std::min(rest.find('['), rest.size());
    for (std::string& name : names) name += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return fmt::format("a bracket of '{}' is not closed", pattern);
    std::vector<std::string> numbers, longer;
    if (std::string wrong = expand_numbers(rest.substr(1, close - 1), numbers); !wrong.empty()) return wrong;
    if (names.size() * numbers.size() > most_hosts) return fmt::format("'{}' are too many", pattern);
    for (const std::string& name : names)
      for (const std::string& number : numbers) longer.push_back(name + number);
    names = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  for (const std::string& name : names)
    if (name.empty() || name.find(']') != std::string::npos) return fmt::format("'{}' is no name", pattern);
  if (into.size() + names.size() > most_hosts) return "these are too many";
  into.insert(into.end(), names.begin(), names.end());
  return {};
}

std::string not_understood(const char* variable, const char* value, const std::string& why) {
  return fmt::format("Slurm's {}='{}' is not understood: {}; name the hosts with -H", variable, value, why);
}

}  // namespace

bool allocation::has(std::string_view name) const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [name](const host_slots& each) { return each.name == name; });
}

std::string expand_nodelist(std::string_view list, std::vector<std::string>& into) {
  return for_each_part(list, true, [&](std::string_view part) { return expand_name(part, into); });
}

std::string expand_counts(std::string_view list, std::vector<unsigned>& into) {
  return for_each_part(list, false, [&](std::string_view part) -> std::string {
    const std::size_t times = std::min(part.find("(x"), part.size());
    unsigned count = 0, repeat = 1;
    const bool repeated = times < part.size();
    if (!base::parse_number(part.substr(0, times), count) || count == 0 ||
        (repeated && (part.back() != ')' ||
                      !base::parse_number(part.substr(times + 2, part.size() - times - 3), repeat))))
      return fmt::format("'{}' is no number of tasks", part);
    if (repeat > most_hosts || into.size() + repeat > most_hosts)
      return fmt::format("'{}' are too many", part);
    into.insert(into.end(), repeat, count);
    return {};
  });
}

std::string find_allocation(const variable_lookup& lookup, std::optional<allocation>& into) {
  const char* const list = lookup("SLURM_JOB_NODELIST");
  if (lookup("SLURM_JOB_ID") == nullptr || list == nullptr || lookup("VERBENA_RANK") != nullptr) return {};
  const char* const tasks_of_step = lookup("SLURM_STEP_NUM_TASKS");
  if (tasks_of_step != nullptr && std::string_view{tasks_of_step} != "1") return {};
  std::vector<std::string> names;
  if (std::string wrong = expand_nodelist(list, names); !wrong.empty())
    return not_understood("SLURM_JOB_NODELIST", list, wrong);
  // Inside a step srun has put the step's own tasks there (it says them once more), but for --preserve-env. What is left of the job
  // are its processors.
  const char* variable = "SLURM_TASKS_PER_NODE";
  const char* const of_step = lookup("SLURM_STEP_TASKS_PER_NODE");
  const char* counts = lookup(variable);
  if (counts != nullptr && of_step != nullptr && std::string_view{counts} == of_step) {
    variable = "SLURM_JOB_CPUS_PER_NODE";
    counts = lookup(variable);
  }
  std::vector<unsigned> slots;
  if (counts == nullptr) {
    slots.assign(names.size(), 1);
  } else if (std::string wrong = expand_counts(counts, slots); !wrong.empty()) {
    return not_understood(variable, counts, wrong);
  }
  if (slots.size() != names.size())
    return not_understood(
        variable, counts,
        fmt::format("numbers for {} hosts, and SLURM_JOB_NODELIST names {}", slots.size(), names.size()));
  allocation found;
  for (std::size_t i = 0; i < names.size(); ++i) found.hosts.push_back({names[i], slots[i]});
  // Set by Slurm's daemon for what it starts itself; salloc sets it for nobody.
  if (const char* const node = lookup("SLURMD_NODENAME"); node != nullptr && found.has(node))
    found.here = node;
  into = std::move(found);
  return {};
}

std::vector<std::string> srun_words(const std::string& host) {
  return {
      "env",
      // What scripts set for their own calls of srun, and what would leave the step a part of the job's cores or memory.
      "-u", "SRUN_CPUS_PER_TASK", "-u", "SLURM_CPUS_PER_TASK", "-u", "SLURM_EXACT", "-u", "SLURM_MEM_PER_CPU",
      "-u", "SLURM_MEM_PER_GPU", "-u", "SLURM_TRES_PER_TASK", "-u", "SLURM_EXCLUSIVE", "-u", "SLURM_GPUS_PER_TASK",
      "-u", "SLURM_CPUS_PER_GPU", "-u", "SLURM_NTASKS_PER_GPU", "srun", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1",
      "--nodelist=" + host, "--overlap", "--mem=0", "--mpi=none", "--cpu-bind=none", "--export=ALL",
      "--chdir=/", "--input=all", "--quiet"};
}

}  // namespace verbena::launcher
