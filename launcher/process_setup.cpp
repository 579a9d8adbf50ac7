#include "launcher/process_setup.hpp"

#include "base/check.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>

namespace verbena::launcher {
namespace {

int user_stderr = -1;

/// Copies what is hidden on descriptor 2 to the user. Signal-safe: a broken invariant of our own ends here.
void uncover() {
  char bytes[4096];
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(2, bytes, sizeof bytes, at);
    if (count <= 0 || ::write(user_stderr, bytes, static_cast<std::size_t>(count)) < 0) return;
    at += count;
  }
}

}  // namespace

constexpr std::size_t heap_bytes = 768 * 1024;  // what libpmix's server takes for itself

void arrange_heap() {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TOP_PAD, static_cast<int>(heap_bytes));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(4 * heap_bytes));
  void* volatile grown = std::malloc(100 * 1024);  // larger than what is left of the first heap: it grows now
  std::free(grown);
}

void fill_heap() {
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0)) & ~std::uintptr_t{4095};
  // Older kernels do not know it: then each page comes when it is touched.
  ::madvise(reinterpret_cast<void*>(end - heap_bytes), heap_bytes, 23 /* MADV_POPULATE_WRITE, Linux 5.14 */);
}

void open_missing_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", O_RDWR);  // the lowest free number is fd
}

std::string raise_descriptor_limit(unsigned ranks) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  // Two pipes and one PMIx connection each, and what the launcher and libpmix keep open for themselves.
  const rlim_t needed = 3ULL * ranks + 32;
  if (limit.rlim_cur >= needed) return {};
  return fmt::format(
      "{} ranks need about {} open files and the limit is {}: start fewer, or raise it (ulimit -n {})", ranks,
      needed, limit.rlim_cur, needed);
}

std::string random_name() {
  std::array<unsigned char, 16> bytes{};
  base::check(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
              "getrandom succeeds");
  std::string name;
  for (const unsigned char byte : bytes) name += fmt::format("{:02x}", byte);
  return name;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] == '\0' ? "localhost" : name.data();
}

sigset_t block_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, nullptr);  // ignored, it would take the exit statuses with it
  // As it was found: a second call finds what the first has made of it.
  static const sigset_t found = [] {
    sigset_t all, before;
    sigfillset(&all);
    sigemptyset(&before);
    ::sigprocmask(SIG_SETMASK, &all, &before);
    return before;
  }();
  return found;
}

void release_standard_input() {
  const base::unique_fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (nothing) ::dup2(nothing.get(), 0);
}

hidden_stderr::hidden_stderr() : user_(::fcntl(2, F_DUPFD_CLOEXEC, 3)) {
  user_stderr = user_.get();
  const base::unique_fd memory{::memfd_create("rdmarun-stderr", MFD_CLOEXEC)};
  if (!user_ || !memory) return;
  ::fcntl(memory.get(), F_SETFL, O_APPEND);
  ::dup2(memory.get(), 2);
  struct sigaction abort {};
  abort.sa_handler = [](int) { uncover(); };
  abort.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGABRT, &abort, nullptr);
}

hidden_stderr::~hidden_stderr() {
  if (std::uncaught_exceptions() != 0 && user_) ::dup2(user_.get(), 2);
}

std::string hidden_stderr::text() const {
  std::string all(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(2, 0, SEEK_END))), '\0');
  const ssize_t count = ::pread(2, all.data(), all.size(), 0);
  all.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  return all;
}

void hidden_stderr::print(const std::string& text) const {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t count = ::write(user_.get(), rest.data(), rest.size());
    if (count < 0 && errno != EINTR) return;
    rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  }
}

}  // namespace verbena::launcher
