// An agent's first step: it reads its order from the standard input, connects back to rdmarun, and both prove themselves.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "launcher/hosts/proof.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

/// What rdmarun writes to the standard input of whatever starts an agent, as one line:
/// "verbena-agent VERSION INDEX SECRET ADDRESS PORT [ADDRESS PORT]...".
struct agent_order {
  std::uint32_t version = 0;
  std::uint32_t index = 0;
  job_secret secret{};
  std::vector<std::string> places;  ///< "ADDRESS PORT"
};
std::string write_order(const agent_order& order);
/// Nothing: it is no such line.
std::optional<agent_order> read_order(std::string_view line);

/// Tries all places at once; the first where rdmarun proves itself is it. Nothing: none did in time, and `why` says what came
/// of each.
base::unique_fd call_back(const agent_order& order, base::nanoseconds patience, std::string& why);

}  // namespace verbena::launcher
