#include "tests/sim/tally.hpp"

#include <fmt/format.h>

namespace verbena::sim_tests {
namespace {

template <class Visit>
void for_each(const tally& t, Visit&& visit) {
  for (std::size_t i = 0; i < call_names.size(); ++i) visit(call_names[i], t.calls[i]);
  for (std::size_t i = 0; i < event_names.size(); ++i) visit(event_names[i], t.events[i]);
  for (std::size_t i = 0; i < transport::sim::counter_names.size(); ++i)
    visit(transport::sim::counter_names[i], t.world[static_cast<transport::sim::counter>(i)]);
}

}  // namespace

void tally::add(const tally& other) {
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i] += other.calls[i];
  for (std::size_t i = 0; i < events.size(); ++i) events[i] += other.events[i];
  steps += other.steps;
  for (std::size_t i = 0; i < transport::sim::counter_names.size(); ++i) {
    const auto which = static_cast<transport::sim::counter>(i);
    world.add(which, other.world[which]);
  }
}

std::string tally::text() const {
  std::string line = fmt::format("steps={}", steps);
  for_each(*this,
           [&](std::string_view name, std::uint64_t had) { line += fmt::format(" {}={}", name, had); });
  return line;
}

std::vector<std::string> tally::missing() const {
  std::vector<std::string> names;
  for_each(*this, [&](std::string_view name, std::uint64_t had) {
    const bool may_lack =
        name == event_names[static_cast<std::size_t>(event::hung_by_death)] || name == "links_given_up";
    if (had == 0 && !may_lack) names.emplace_back(name);
  });
  return names;
}

}  // namespace verbena::sim_tests
