#include "launcher/environment.hpp"

#include "base/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace verbena::launcher {
namespace {

std::string_view name_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

auto position(const environment& variables, std::string_view name) {
  return std::find_if(variables.begin(), variables.end(),
                      [name](const std::string& v) { return name_of(v) == name && v.size() > name.size(); });
}

/// Letters to put in, leave out or change until `a` is `b` (Wagner and Fischer, The string-to-string correction problem,
/// 1974).
std::size_t letters_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

bool belongs_to_a_job(std::string_view name) {
  static constexpr std::array<std::string_view, 5> ours = {
      "VERBENA_RANK", "VERBENA_SIZE", "VERBENA_LOCAL_RANK", "VERBENA_LOCAL_SIZE", "VERBENA_SEGMENT"};
  if (std::find(ours.begin(), ours.end(), name) != ours.end()) return true;
  if (name.starts_with("PMIX_MCA_"))
    return name == "PMIX_MCA_gds" || name == "PMIX_MCA_psec";  // the user's own tuning stays; store and proof are ours
  static constexpr std::array<std::string_view, 7> others = {
      "PMIX_", "PMI_", "PMI2_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE", "HYDI_", "HYDRA_PROXY_"};
  return std::any_of(others.begin(), others.end(),
                     [name](std::string_view p) { return name.starts_with(p); });
}

environment without_outer_job(const char* const* inherited) {
  environment kept;
  for (; *inherited != nullptr; ++inherited)
    if (!belongs_to_a_job(name_of(*inherited))) kept.emplace_back(*inherited);
  return kept;
}

void set_variable(environment& variables, std::string_view assignment) {
  const auto at = position(variables, name_of(assignment));
  if (at == variables.end())
    variables.emplace_back(assignment);
  else
    variables[static_cast<std::size_t>(at - variables.begin())] = assignment;
}

std::string apply_request(environment& variables, std::string_view request) {
  const std::string_view name = name_of(request);
  const bool assigns = name.size() < request.size();
  const bool removes = !assigns && name.size() > 1 && name.back() == '-';
  const std::string_view bare = removes ? name.substr(0, name.size() - 1) : name;
  if (bare.empty()) return "NAME=value, NAME or NAME-";
  if (belongs_to_a_job(bare)) return "a variable of your own: this one tells a rank its place in the job";
  if (assigns) {
    set_variable(variables, request);
  } else if (removes) {
    const auto at = position(variables, bare);
    if (at != variables.end()) variables.erase(at);
  } else if (find_variable(variables, bare) == nullptr) {
    return "a variable that is set here, or NAME=value";
  }
  return {};
}

std::vector<std::string> misspelt_settings(const environment& variables) {
  std::vector<std::string> sentences;
  const auto settings = base::setting_rows();
  for (const std::string& variable : variables) {
    const std::string_view name = name_of(variable);
    if (!name.starts_with("VERB") || belongs_to_a_job(name)) continue;
    std::size_t nearest = 3;
    std::string_view meant;
    for (const base::setting_row& row : settings)
      if (const std::size_t distance = letters_between(name, row.variable); distance < nearest) {
        nearest = distance;
        meant = row.variable;
      }
    if (nearest > 0 && nearest < 3)
      sentences.push_back(fmt::format("the variable {} is no setting and does nothing; is {} meant?", name, meant));
  }
  return sentences;
}

const char* find_variable(const environment& variables, std::string_view name) {
  const auto at = position(variables, name);
  return at == variables.end() ? nullptr : at->c_str() + name.size() + 1;
}

}  // namespace verbena::launcher
