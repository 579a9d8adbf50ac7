// The settings of the library: one table of rows (name, type, default, unit, text). Every VERBENA_* variable
// that the library obeys is a row here; `rdmarun --settings` and docs/settings.md are printed from it. A
// value that does not parse is an error naming variable, value and what would be right, thrown when a context
// is made.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::base {

/// The values in force for one context. Adding a setting: a member here, a row in settings.cpp.
struct settings {
  std::string fabric;                          ///< comma list of fabrics allowed; empty: all
  std::string interface;                       ///< network interfaces and networks TCP may use; empty: all
  std::string port_range;                      ///< ports TCP listens on, "low:high"; empty: any
  std::string device;                          ///< RDMA device, "name" or "name:port"; empty: the fastest active
  std::uint64_t keep_registered = 1u << 30;    ///< bytes of verbena::memory() that stay registered with a device
  std::string allreduce = "auto";              ///< auto | recursive_doubling | ring | node
  std::string barrier = "auto";                ///< auto | dissemination | node
  std::string broadcast = "auto";              ///< auto | binomial | scatter_ring | node
  std::string reduce = "auto";                 ///< auto | binomial | scatter_gather | node
  std::string gather = "auto";                 ///< auto | binomial | linear | node
  std::string scatter = "auto";                ///< auto | binomial | linear | node
  std::string allgather = "auto";              ///< auto | bruck | ring | node
  std::string alltoall = "auto";               ///< auto | bruck | pairwise | node
  std::uint64_t eager_limit = 0;               ///< bytes; 0: the fabric's own
  std::string single_copy = "auto";            ///< auto | off: cross-memory attach between ranks of a node
  std::int64_t spin_us = -1;                   ///< spin before yielding; -1: by free cores
  std::uint64_t unexpected_budget = 4u << 20;  ///< bytes of unexpected eager data a peer may park here
  std::uint64_t slow_wait_s = 10;              ///< a wait that lasts longer says so once; 0: never
  bool singleton = false;                      ///< start as a job of one although another launcher is seen
  bool explain = false;                    ///< print the ways to all peers, and why, when the context joins
  bool stats = false;                          ///< print the counters when the context ends
  std::uint64_t join_timeout_s = 60;           ///< deadline of the join
  std::uint64_t link_timeout_s = 10;           ///< a broken link may take so long to come back
  std::string test_faults;                     ///< test builds only: faults to inject below the API
};

/// One row of the table.
struct setting_row {
  std::string_view variable;  ///< VERBENA_...
  std::string_view type;      ///< "bytes", "count", "seconds", "yes/no", or the words allowed
  std::string_view text;
  std::function<std::string(const settings&)> show;
  /// Parses; returns an empty string, or what would have been right and leaves the setting as it was.
  std::function<std::string(settings&, std::string_view)> parse;
};

std::span<const setting_row> setting_rows();

/// Reads the environment through `lookup` (nullptr: the process's). Throws error{errc::invalid_argument}.
settings read_settings(const std::function<const char*(const char*)>& lookup = nullptr);

/// The first name of a comma list that is no fabric's; empty if all are.
std::string_view unknown_fabric(std::string_view names) noexcept;

/// "4096", "64k", "1m", "2g" (powers of 1024); false if it is no size.
bool parse_bytes(std::string_view text, std::uint64_t& bytes) noexcept;

}  // namespace verbena::base
