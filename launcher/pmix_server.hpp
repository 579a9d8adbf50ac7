// The PMIx server of one job on this host. Its callbacks run on libpmix's threads and only put events into a
// queue; the event loop takes them out. The one file pair of the launcher that includes <pmix_server.h>.
//
// Nothing is written to disk: the key-value store is `hash`, which lives in memory, and no tool may connect,
// so there is no rendezvous file. The topology handed to libpmix is a flat one of as many cores as there are:
// a scan of the machine costs forty milliseconds, and ranks are told their place by keys.
#pragma once

#include "base/fd.hpp"
#include "launcher/job.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace verbena::launcher {

struct pmix_event {
  enum class kind : std::uint8_t {
    joined,
    left,
    aborted,
    // Only in jobs of several hosts:
    fence,         ///< all ranks of `ranks` that are here have met; `text`: what they have published
    modex_wanted,  ///< somebody here wants what `rank`, on another host, has published
    modex_ready,   ///< the answer to fetch_modex: what `rank` has published, if `code` is 0
  };
  kind what = kind::joined;
  std::uint32_t rank = 0;
  int code = 0;
  std::string text{};
  std::uint64_t ticket = 0;          ///< for the answer
  std::vector<std::uint32_t> ranks{};  ///< that take part in a fence, ascending; none: all
};

/// What a job looks like to a PMIx client.
struct pmix_job {
  std::string name;  ///< the namespace; unguessable, since a local process that knows it may join
  std::vector<std::string> hosts;         ///< each once
  std::vector<std::uint32_t> host_of;     ///< of each rank, an index of `hosts`
  std::uint32_t here = 0;                 ///< this host's index
  std::vector<std::uint32_t> program_of;  ///< of each rank, ascending: "application" in PMIx

  std::vector<std::string> cpuset;    ///< of each rank of this host, "0-3"; empty: no rank is bound
  std::vector<std::string> locality;  ///< of each rank of this host, in hwloc's words; empty as well

  std::uint32_t size() const { return static_cast<std::uint32_t>(program_of.size()); }
};

class pmix_server {
 public:
  pmix_server();
  /// Waits for `prepare`. Libpmix is never finalised: the process ends with it, and its orderly end costs milliseconds
  /// for nothing.
  ~pmix_server();
  pmix_server(const pmix_server&) = delete;
  pmix_server& operator=(const pmix_server&) = delete;

  /// Starts the server on a thread of its own, for it takes as long as everything else before the first rank. The
  /// environment of this process is libpmix's from here until `start` has returned.
  void prepare();
  /// Waits for that and registers the job. Returns an empty string, or one sentence of what went wrong.
  std::string start(const pmix_job& job);

  /// What each rank's environment needs, but for PMIX_RANK.
  const std::vector<std::string>& environment() const { return environment_; }

  int event_fd() const { return event_fd_.get(); }
  std::vector<pmix_event> take_events();

  /// Tells the ranks of this host that have asked for such events that `rank`, of any host, has failed.
  void tell_failure(std::uint32_t rank, failure why, int wait_status);

  // In jobs of several hosts.
  /// Ends a fence with what all ranks have published, or with failure.
  void answer_fence(std::uint64_t ticket, bool good, std::string_view data);
  void answer_modex(std::uint64_t ticket, bool good, std::string_view data);
  /// Asks for what a rank of this host has published, once it has; modex_ready follows.
  void fetch_modex(std::uint32_t rank, std::uint64_t ticket);

  /// "4.2.2", of the library in use.
  static std::string version();

 private:
  std::string describe(const char* call, int status) const;

  base::unique_fd event_fd_;
  std::string job_name_;
  std::thread preparing_;
  int prepared_ = 0;  // the status of PMIx_server_init
  std::vector<std::string> environment_;
};

}  // namespace verbena::launcher
