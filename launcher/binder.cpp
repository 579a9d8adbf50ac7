#include "launcher/binder.hpp"

#include "launcher/topology.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace verbena::launcher {
namespace {

std::vector<unsigned> all_cpus(const placement& where) {
  std::vector<unsigned> all;
  for (const auto& cpus : where.cpus) all.insert(all.end(), cpus.begin(), cpus.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

bound_job bind_job(binding policy, mapping map, unsigned ranks, const std::vector<unsigned>& mask,
                   unsigned usable, const core_locks& locks) {
  bound_job job;
  placement_request request{policy, ranks, {}, usable, {}, map};
  const bool automatic = policy == binding::automatic;
  // What is decided without a look at the machine is.
  if (policy == binding::none || mask.empty() || (automatic && (ranks == 1 || ranks > usable))) {
    for (const unsigned cpu : mask) request.processors.push_back({cpu, cpu, 0, 0});
    job.where = place(request);
    return job;
  }
  job.processors = wiring_of(mask);
  request.processors = job.processors;
  // Another job may take a core between the look and the locks: then look again.
  for (int attempt = 0; attempt < 16; ++attempt) {
    const auto held = locks.held_by_others(mask);
    if (!held) {
      // Without locks nobody can know what other jobs do: only what was asked for is bound.
      if (automatic) request.held = mask;
      job.where = place(request);
      if (automatic) job.where.reason = "cores cannot be locked here";
      return job;
    }
    request.held = *held;
    job.where = place(request);
    if (!job.where.bound()) return job;
    std::vector<unsigned> wanted = all_cpus(job.where), free;
    std::set_difference(wanted.begin(), wanted.end(), held->begin(), held->end(), std::back_inserter(free));
    if (locks.take(free)) return job;
  }
  job.where = place({binding::none, ranks, {}, usable, {}});
  job.where.reason = "other jobs are taking the cores at the same time";
  return job;
}

std::string describe_bindings(const bound_job& job, const std::vector<std::uint32_t>& ranks,
                              const std::vector<unsigned>& mask, const std::string& host) {
  std::string text;
  const std::string why = job.where.reason.empty() ? "" : fmt::format(" ({})", job.where.reason);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string place = job.where.bound()
                                  ? "bound to " + describe_place(job.where.cpus[i], job.processors)
                              : mask.empty() ? std::string{"not bound"}
                                             : "not bound: processors " + describe_cpus(mask);
    text += fmt::format("rdmarun: rank {} on {}: {}{}\n", ranks[i], host, place, why);
  }
  return text;
}

}  // namespace verbena::launcher
