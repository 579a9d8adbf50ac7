#include "launcher/hosts/mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace verbena::launcher {

std::vector<std::uint32_t> map_ranks(mapping policy, const std::vector<unsigned>& slots, unsigned ranks) {
  std::vector<std::uint32_t> host_of;
  while (host_of.size() < ranks) {  // once more round for those beyond the slots
    std::vector<unsigned> left = slots;
    if (policy != mapping::node) {
      for (std::uint32_t host = 0; host < slots.size(); ++host)
        for (; left[host] > 0 && host_of.size() < ranks; --left[host]) host_of.push_back(host);
      continue;
    }
    for (unsigned most = *std::max_element(left.begin(), left.end()); most > 0; --most)
      for (std::uint32_t host = 0; host < slots.size() && host_of.size() < ranks; ++host)
        if (left[host] > 0) {
          --left[host];
          host_of.push_back(host);
        }
  }
  // Neighbours in rank are neighbours in place: by host, as far as the policy does not say otherwise.
  if (policy != mapping::node) std::sort(host_of.begin(), host_of.end());
  return host_of;
}

std::string parse_mapping(std::string_view text, mapping& into) {
  constexpr std::pair<std::string_view, mapping> words[] = {
      {"slot", mapping::slot}, {"node", mapping::node}, {"core", mapping::core}, {"numa", mapping::numa}};
  for (const auto& [word, policy] : words)
    if (word == text) {
      into = policy;
      return {};
    }
  return fmt::format("option '--map' takes slot, node, core or numa, not '{}'", text);
}

}  // namespace verbena::launcher
