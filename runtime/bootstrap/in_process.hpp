// Bootstrap for many contexts in one process: tests as threads, and the simulator. One in_process_job is made first;
// each context takes one member of it. The job outlives its members.
#pragma once

#include "runtime/bootstrap/bootstrap.hpp"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace verbena::runtime {

/// Thrown by `abort` of a member: one context must not end the process that holds the others.
struct in_process_abort : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class in_process_job {
 public:
  /// `with_segment`: all members share one node segment (ranks as threads over shared memory); otherwise there is none.
  in_process_job(std::uint32_t size, bool with_segment);

  std::unique_ptr<bootstrap> member(std::uint32_t rank);
  /// The descriptor of the segment, for a test that plays the launcher; -1 without one.
  int segment_fd() const noexcept { return segment_.get(); }

 private:
  class member_bootstrap;

  std::uint32_t size_;
  base::unique_fd segment_;
  std::mutex mutex_;
  std::condition_variable met_;
  std::uint32_t arrived_ = 0;
  std::uint64_t round_ = 0;
  std::map<std::pair<std::uint32_t, std::string>, std::vector<std::byte>> values_;
};

}  // namespace verbena::runtime
