#include "launcher/request.hpp"

#include "base/settings.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <filesystem>

namespace verbena::launcher {

environment make_environment(const options& how, environment found, std::string& wrong) {
  environment variables = std::move(found);
  if (!how.fabric.empty()) set_variable(variables, "VERBENA_FABRIC=" + how.fabric);
  if (!how.device.empty()) set_variable(variables, "VERBENA_DEVICE=" + how.device);
  if (!how.interface.empty()) set_variable(variables, "VERBENA_INTERFACE=" + how.interface);
  if (!how.port_range.empty()) set_variable(variables, "VERBENA_PORT_RANGE=" + how.port_range);
  if (!how.link_timeout.empty()) set_variable(variables, "VERBENA_LINK_TIMEOUT_S=" + how.link_timeout);
  if (how.explain) set_variable(variables, "VERBENA_EXPLAIN=1");
  for (const std::string& request : how.variables)
    if (const std::string right = apply_request(variables, request); !right.empty()) {
      wrong = fmt::format("option '-x {}' is not {}", request, right);
      return variables;
    }
  try {
    settings_of(variables);
  } catch (const error& refused) {
    wrong = refused.what();  // once, here, and not by each rank
  }
  return variables;
}

base::settings settings_of(const environment& variables) {
  return base::read_settings([&](const char* name) { return find_variable(variables, name); });
}

bool is_this_host(const std::string& name, const whereabouts& here) {
  if (here.slurm && here.slurm->has(name)) return name == here.slurm->here;
  const std::string& host = here.host;
  return name == "localhost" || name == "127.0.0.1" || name == "::1" || name == host ||
         name == host.substr(0, host.find('.'));
}

bool needs_other_hosts(const options& how, const whereabouts& here) {
  return std::any_of(how.hosts.begin(), how.hosts.end(),
                     [&](const host_slots& each) { return !is_this_host(each.name, here); });
}

std::string check_request(const options& how, unsigned size) {
  if (how.input_rank >= static_cast<int>(size))
    return fmt::format("option '--stdin {}': the last rank of this job is {}", how.input_rank, size - 1);
  if (!how.output_directory.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(how.output_directory, failed);
    if (failed)
      return fmt::format("cannot make the directory '{}': {}", how.output_directory, failed.message());
  }
  return {};
}

}  // namespace verbena::launcher
