#include "base/settings.hpp"

#include "base/network.hpp"

#include <fmt/format.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace verbena::base {
namespace {

template <class Integer>
bool parse_integer(std::string_view text, Integer& value) noexcept {
  const char* end = text.data() + text.size();
  Integer whole{};  // from_chars also takes the front of a text that goes on wrongly
  auto [stop, failure] = std::from_chars(text.data(), end, whole);
  if (failure != std::errc{} || stop != end) return false;
  value = whole;
  return true;
}

setting_row words(std::string_view variable, std::string settings::*member,
                  std::vector<std::string_view> allowed, std::string_view list, std::string_view text) {
  return {variable, list, text, [member](const settings& s) { return s.*member; },
          [member, allowed = std::move(allowed), list](settings& s, std::string_view value) -> std::string {
            if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
              return fmt::format("one of {}", list);
            s.*member = value;
            return {};
          }};
}

setting_row flag(std::string_view variable, bool settings::*member, std::string_view text) {
  return {variable, "yes/no", text, [member](const settings& s) { return s.*member ? "yes" : "no"; },
          [member](settings& s, std::string_view value) -> std::string {
            const bool yes = value == "1" || value == "yes" || value == "true" || value == "on";
            if (!yes && value != "0" && value != "no" && value != "false" && value != "off" && !value.empty())
              return "yes or no";
            s.*member = yes;
            return {};
          }};
}

/// `most`: beyond it nobody can mean it, and products with it would overflow.
template <class Integer>
setting_row number(std::string_view variable, Integer settings::*member, std::string_view type, Integer most,
                   std::string_view text) {
  return {variable, type, text, [member](const settings& s) { return fmt::format("{}", s.*member); },
          [member, type, most](settings& s, std::string_view value) -> std::string {
            Integer given{};
            const bool right = [&] {
              if constexpr (std::is_unsigned_v<Integer>) {
                if (type == "bytes") return parse_bytes(value, given);
              }
              return parse_integer(value, given);
            }();
            if (right && given <= most) {
              s.*member = given;
              return {};
            }
            return type == "bytes" ? fmt::format("a size such as 4096, 64k or 1m, at most {}", most)
                                   : fmt::format("a whole number ({}), at most {}", type, most);
          }};
}

constexpr std::uint64_t day_s = 24 * 60 * 60;

}  // namespace

std::string_view unknown_fabric(std::string_view names) noexcept {
  constexpr std::array<std::string_view, 4> known = {"self", "shm", "tcp", "verbs"};
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) return name;
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return {};
}

namespace {

std::vector<setting_row> make_rows() {
  return {
      {"VERBENA_FABRIC", "names", "fabrics allowed, comma separated (self, shm, tcp, verbs); empty: all",
       [](const settings& s) { return s.fabric; },
       [](settings& s, std::string_view value) -> std::string {
         if (!unknown_fabric(value).empty()) return "a list of self, shm, tcp, verbs";
         s.fabric = value;
         return {};
       }},
      {"VERBENA_INTERFACE", "names",
       "network interfaces (eth0) and networks (10.1.0.0/16) that TCP may use, comma separated; empty: all",
       [](const settings& s) { return s.interface; },
       [](settings& s, std::string_view value) -> std::string {
         interface_list list;
         if (!interface_list::parse(value, list)) return "a list such as eth0,10.1.0.0/16";
         s.interface = value;
         return {};
       }},
      {"VERBENA_PORT_RANGE", "ports", "ports that TCP listens on, LOW:HIGH; empty: any",
       [](const settings& s) { return s.port_range; },
       [](settings& s, std::string_view value) -> std::string {
         port_range range;
         if (!value.empty() && !port_range::parse(value, range)) return "a range of ports such as 5000:5100";
         s.port_range = value;
         return {};
       }},
      {"VERBENA_DEVICE", "name", "RDMA device to use, NAME or NAME:PORT; empty: the fastest active port",
       [](const settings& s) { return s.device; },
       [](settings& s, std::string_view value) -> std::string {
         s.device = value;
         return {};
       }},
      number(
          "VERBENA_KEEP_REGISTERED", &settings::keep_registered, "bytes", std::uint64_t{1} << 40,
          "memory of verbena::memory() that stays registered with an RDMA device between messages, at most"),
      words("VERBENA_ALLREDUCE", &settings::allreduce, {"auto", "recursive_doubling", "ring", "node"},
            "auto|recursive_doubling|ring|node", "algorithm of all-reduce"),
      words("VERBENA_BARRIER", &settings::barrier, {"auto", "dissemination", "node"},
            "auto|dissemination|node", "algorithm of the barrier"),
      words("VERBENA_BROADCAST", &settings::broadcast, {"auto", "binomial", "scatter_ring", "node"},
            "auto|binomial|scatter_ring|node", "algorithm of the broadcast"),
      words("VERBENA_REDUCE", &settings::reduce, {"auto", "binomial", "scatter_gather", "node"},
            "auto|binomial|scatter_gather|node", "algorithm of the reduction to one rank"),
      words("VERBENA_GATHER", &settings::gather, {"auto", "binomial", "linear", "node"},
            "auto|binomial|linear|node", "algorithm of the gather"),
      words("VERBENA_SCATTER", &settings::scatter, {"auto", "binomial", "linear", "node"},
            "auto|binomial|linear|node", "algorithm of the scatter"),
      words("VERBENA_ALLGATHER", &settings::allgather, {"auto", "bruck", "ring", "node"},
            "auto|bruck|ring|node", "algorithm of the allgather"),
      words("VERBENA_ALLTOALL", &settings::alltoall, {"auto", "bruck", "pairwise", "node"},
            "auto|bruck|pairwise|node", "algorithm of the all-to-all exchange"),
      number("VERBENA_EAGER_LIMIT", &settings::eager_limit, "bytes", std::uint64_t{16} << 20,
             "largest message sent without asking the receiver first; 0: the fabric's own limit"),
      words("VERBENA_SINGLE_COPY", &settings::single_copy, {"auto", "off"}, "auto|off",
            "move large messages between ranks of a node by cross-memory attach"),
      number("VERBENA_SPIN_US", &settings::spin_us, "microseconds", std::int64_t{60'000'000},
             "spin this long before yielding; -1: by free cores"),
      number("VERBENA_UNEXPECTED_BUDGET", &settings::unexpected_budget, "bytes", std::uint64_t{1} << 40,
             "eager data one peer may leave here before it is received"),
      number("VERBENA_SLOW_WAIT", &settings::slow_wait_s, "seconds", 365 * day_s,
             "a wait that lasts longer writes one line that says for what; 0: never"),
      flag("VERBENA_SINGLETON", &settings::singleton,
           "run as a job of one although another launcher is seen"),
      flag("VERBENA_EXPLAIN", &settings::explain,
           "print which fabric and protocol leads to each peer, and why, when a rank joins"),
      flag("VERBENA_STATS", &settings::stats, "print the counters of each rank when it leaves"),
      number("VERBENA_JOIN_TIMEOUT", &settings::join_timeout_s, "seconds", 365 * day_s,
             "deadline for what ranks exchange when they join under a launcher other than rdmarun"),
      number("VERBENA_LINK_TIMEOUT_S", &settings::link_timeout_s, "seconds", day_s,
             "a link to another machine that is down for longer is given up"),
      {"VERBENA_TEST_FAULTS", "names", "faults injected below the API; obeyed by test builds only",
       [](const settings& s) { return s.test_faults; },
       [](settings& s, std::string_view value) -> std::string {
         s.test_faults = value;
         return {};
       }},
  };
}

}  // namespace

std::span<const setting_row> setting_rows() {
  static const std::vector<setting_row> rows = make_rows();
  return rows;
}

settings read_settings(const std::function<const char*(const char*)>& lookup) {
  settings result;
  for (const setting_row& row : setting_rows()) {
    const std::string name{row.variable};
    const char* value = lookup ? lookup(name.c_str()) : std::getenv(name.c_str());
    if (value == nullptr) continue;
    if (std::string right = row.parse(result, value); !right.empty())
      throw error(errc::invalid_argument, fmt::format("{}='{}' is not {}", name, value, right));
  }
  return result;
}

bool parse_bytes(std::string_view text, std::uint64_t& bytes) noexcept {
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back() | 0x20) {
      case 'k':
        shift = 10;
        break;
      case 'm':
        shift = 20;
        break;
      case 'g':
        shift = 30;
        break;
      default:
        break;
    }
  }
  if (shift != 0) text.remove_suffix(1);
  std::uint64_t value = 0;
  if (!parse_integer(text, value) || value > (UINT64_MAX >> shift)) return false;
  bytes = value << shift;
  return true;
}

}  // namespace verbena::base
