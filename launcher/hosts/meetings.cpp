#include "launcher/hosts/meetings.hpp"

#include <set>

namespace verbena::launcher {

std::size_t meetings::hosts_of(const std::vector<std::uint32_t>& ranks) const {
  std::set<std::uint32_t> hosts;
  if (ranks.empty()) hosts.insert(host_of_.begin(), host_of_.end());
  for (const std::uint32_t rank : ranks)
    if (rank < host_of_.size()) hosts.insert(host_of_[rank]);
  return hosts.size();
}

void meetings::fence(std::uint32_t host, std::uint64_t ticket, const std::vector<std::uint32_t>& ranks,
                     std::string data) {
  gathering& come = fences_[ranks];
  come[host].push_back({ticket, std::move(data)});
  if (come.size() < hosts_of(ranks)) return;
  // Libpmix takes the parts of all servers one after the other, in any order.
  std::string all;
  for (auto& [who, arrivals] : come) all += arrivals.front().data;
  gathering rest;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> told;
  for (auto& [who, arrivals] : come) {
    told.emplace_back(who, arrivals.front().ticket);
    arrivals.pop_front();
    if (!arrivals.empty()) rest.emplace(who, std::move(arrivals));
  }
  if (rest.empty())
    fences_.erase(ranks);
  else
    come = std::move(rest);
  for (const auto& [who, its] : told) call_.fence_done(who, its, true, all);
}

void meetings::modex_wanted(std::uint32_t host, std::uint64_t ticket, std::uint32_t rank) {
  if (rank >= host_of_.size()) return call_.modex_done(host, ticket, false, {});
  questions_.emplace(next_ticket_, question{host, ticket});
  call_.fetch(host_of_[rank], next_ticket_++, rank);
}

void meetings::modex_ready(std::uint64_t ticket, bool good, const std::string& data) {
  const auto at = questions_.find(ticket);
  if (at == questions_.end()) return;
  const question asked = at->second;
  questions_.erase(at);
  call_.modex_done(asked.host, asked.ticket, good, data);
}

}  // namespace verbena::launcher
