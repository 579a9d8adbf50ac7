// Where does an agent on another host reach us? The addresses from which this host would speak to it, and else all others that
// this host has and that leave it. From the kernel, never by resolving our own name.
#pragma once

#include "base/network.hpp"

#include <string>
#include <vector>

namespace verbena::launcher {

/// Addresses of this host in words, those towards `hosts` (as far as their names resolve) first; no loopback, none of a link
/// only. Each once. Only those that are allowed.
std::vector<std::string> own_addresses(const std::vector<std::string>& hosts, const base::interface_list& allowed);

}  // namespace verbena::launcher
