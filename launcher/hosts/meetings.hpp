// What the PMIx servers of a job's hosts need from each other: fences over ranks of several hosts, and values that a rank of one
// host wants from a rank of another. A table at the head of the job; pure but for the two calls that answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace verbena::launcher {

class meetings {
 public:
  struct answers {
    std::function<void(std::uint32_t host, std::uint64_t ticket, bool good, const std::string& data)>
        fence_done;
    std::function<void(std::uint32_t host, std::uint64_t ticket, std::uint32_t rank)> fetch;
    std::function<void(std::uint32_t host, std::uint64_t ticket, bool good, const std::string& data)>
        modex_done;
  };
  meetings(std::vector<std::uint32_t> host_of, answers call)
      : host_of_(std::move(host_of)), call_(std::move(call)) {}

  /// The ranks of `host` have come to a fence of `ranks` (none: all). When all hosts have, each gets what all have brought.
  void fence(std::uint32_t host, std::uint64_t ticket, const std::vector<std::uint32_t>& ranks,
             std::string data);
  /// Somebody on `host` wants what `rank` has published.
  void modex_wanted(std::uint32_t host, std::uint64_t ticket, std::uint32_t rank);
  /// The answer to `fetch`, with its ticket.
  void modex_ready(std::uint64_t ticket, bool good, const std::string& data);

 private:
  struct arrival {
    std::uint64_t ticket = 0;
    std::string data;
  };
  /// Of one set of ranks: those that have come, by host; of a host that is quick several, for fences that follow each other.
  using gathering = std::map<std::uint32_t, std::deque<arrival>>;
  struct question {
    std::uint32_t host = 0;
    std::uint64_t ticket = 0;
  };
  std::size_t hosts_of(const std::vector<std::uint32_t>& ranks) const;

  std::vector<std::uint32_t> host_of_;  // of each rank
  answers call_;
  std::map<std::vector<std::uint32_t>, gathering> fences_;
  std::map<std::uint64_t, question> questions_;
  std::uint64_t next_ticket_ = 1;
};

}  // namespace verbena::launcher
