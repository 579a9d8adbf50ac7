#include "base/job_page.hpp"

#include "base/cores.hpp"
#include "base/futex.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <verbena/error.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <climits>
#include <cstring>
#include <new>

namespace verbena::base {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

std::uint64_t page_end(std::uint64_t job_size, std::uint64_t local_size) {
  return sizeof(job_page_header) + local_size * sizeof(doorbell) + round_up(local_size * 4, 8) +
         job_size * sizeof(rank_record);
}

[[noreturn]] void fail(const char* call) {
  throw error(errc::system,
              fmt::format("cannot create the node's shared segment: {}: {}", call, std::strerror(errno)));
}

/// ftruncate, without the signal that ends a process at its limit on file sizes.
int set_size(int fd, std::uint64_t bytes) noexcept {
  struct sigaction ignore {}, before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignore, &before);
  const int result = ::ftruncate(fd, static_cast<off_t>(bytes));
  const int error = errno;
  ::sigaction(SIGXFSZ, &before, nullptr);
  errno = error;
  return result;
}

}  // namespace

std::uint64_t default_rank_span(std::uint32_t local_size) noexcept {
  constexpr std::uint64_t mebibyte = 1ULL << 20;
  const std::uint64_t fair = (64ULL << 30) / std::max(local_size, 1U);
  return std::clamp(fair / mebibyte * mebibyte, 16 * mebibyte, 1024 * mebibyte);
}

unique_fd create_segment(const job_shape& shape) {
  const auto local_size = static_cast<std::uint32_t>(shape.local_ranks.size());
  const std::uint64_t span = shape.rank_span != 0 ? shape.rank_span : default_rank_span(local_size);
  const std::uint64_t shm_offset = round_up(page_end(shape.job_size, local_size), page_bytes);
  const std::uint64_t bytes = shm_offset + round_up(span, page_bytes) * local_size;

  unique_fd fd{::memfd_create("verbena", MFD_CLOEXEC)};
  if (!fd) fail("memfd_create");
  if (set_size(fd.get(), bytes) != 0) {
    if (errno == EFBIG)
      throw error(errc::system, fmt::format("cannot create the node's shared segment: its address space of {} MiB is above "
                                            "the limit on the size of files (ulimit -f), although no file is made",
                                            bytes >> 20));
    fail("ftruncate");
  }
  mapping page = mapping::shared(fd.get(), shm_offset);
  if (!page) fail("mmap");

  auto* header = new (page.data()) job_page_header{};
  header->version = job_page_version;
  header->job_size = shape.job_size;
  header->local_size = local_size;
  header->lanes = 1;
  header->cores = shape.cores != 0 ? shape.cores : usable_cores();
  header->segment_bytes = bytes;
  header->shm_offset = shm_offset;
  header->rank_span = round_up(span, page_bytes);
  if (::getrandom(header->nonce, sizeof header->nonce, 0) != sizeof header->nonce) fail("getrandom");
  auto* ranks =
      reinterpret_cast<std::uint32_t*>(page.data() + sizeof(job_page_header) + local_size * sizeof(doorbell));
  std::copy(shape.local_ranks.begin(), shape.local_ranks.end(), ranks);
  header->magic = job_page_magic;
  return fd;
}

std::optional<job_page> job_page::open(const mapping& segment, std::string& why) {
  auto refuse = [&](std::string text) {
    why = std::move(text);
    return std::nullopt;
  };
  if (segment.size() < sizeof(job_page_header))
    return refuse("the shared segment is too small to hold a job page");
  auto* header = reinterpret_cast<job_page_header*>(segment.data());
  if (header->magic != job_page_magic) return refuse("the inherited descriptor is no Verbena segment");
  if (header->version != job_page_version)
    return refuse(fmt::format("the launcher writes job page version {}, this library reads version {}",
                              header->version, job_page_version));
  if (header->local_size == 0 || header->local_size > header->job_size ||
      header->segment_bytes > segment.size() || header->shm_offset > header->segment_bytes ||
      header->shm_offset < page_end(header->job_size, header->local_size))
    return refuse("the sizes in the job page contradict each other");
  const job_page page{header};
  const auto ranks = page.local_ranks();
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] >= header->job_size || (i > 0 && ranks[i] <= ranks[i - 1]))
      return refuse("the local ranks in the job page are out of order or outside the job");
  return page;
}

std::span<const std::uint32_t> job_page::local_ranks() const noexcept {
  return {reinterpret_cast<const std::uint32_t*>(bells() + header_->local_size), header_->local_size};
}

rank_record& job_page::record(std::uint32_t job_rank) const noexcept {
  std::byte* at =
      reinterpret_cast<std::byte*>(bells() + header_->local_size) + round_up(header_->local_size * 4ULL, 8);
  return reinterpret_cast<rank_record*>(at)[job_rank];
}

void job_page::announce(std::uint32_t job_rank, rank_state state, std::uint32_t outcome) const noexcept {
  record(job_rank).outcome = outcome;
  record(job_rank).state.store(state, std::memory_order_release);
  header_->news.fetch_add(1, std::memory_order_release);
  wake_all();
}

void job_page::announce_ending() const noexcept {
  header_->ending.store(1, std::memory_order_release);
  header_->news.fetch_add(1, std::memory_order_release);
  wake_all();
}

void job_page::wake_all() const noexcept {
  for (std::uint32_t i = 0; i < header_->local_size; ++i) ring(bell(i));
}

void ring(doorbell& bell) noexcept {
  bell.word.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(bell.word, INT_MAX);
}

}  // namespace verbena::base
