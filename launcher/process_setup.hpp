// What the launcher does to its own process before a job: descriptors, limits, signals, and the detour of
// descriptor 2, on which libpmix would talk to the user.
#pragma once

#include "base/fd.hpp"

#include <csignal>
#include <string>

namespace verbena::launcher {

/// One heap for all threads, since another one for each of libpmix's costs it a tenth of a millisecond, and large enough for them.
void arrange_heap();
/// Has the kernel provide the heap's pages at once. Meant for a thread that has time, while another one fills them: page by page
/// it takes that one longer.
void fill_heap();

/// Fills closed descriptors 0 to 2 with /dev/null, so that nothing else lands there.
void open_missing_descriptors();

/// Raises the soft limit of open files to the hard one. Returns a sentence if `ranks` need more than that.
std::string raise_descriptor_limit(unsigned ranks);

/// 128 random bits in hexadecimal.
std::string random_name();

std::string host_name();

/// Blocks every signal (they are read from a descriptor), resets an ignored SIGCHLD, and returns the mask as
/// it was.
sigset_t block_signals();

/// Lets go of the standard input: it belongs to rank 0.
void release_standard_input();

/// While it lives, descriptor 2 is a file in memory; the user's standard error has another number.
class hidden_stderr {
 public:
  hidden_stderr();
  hidden_stderr(const hidden_stderr&) = delete;
  /// Gives it back if an exception goes by, so that its text is seen.
  ~hidden_stderr();
  int user_fd() const { return user_.get(); }
  std::string text() const;  ///< what has been said so far
  void print(const std::string& text) const;

 private:
  base::unique_fd user_;
};

}  // namespace verbena::launcher
