// The job page: the head of the node's shared segment, format version 1. The launcher's side creates the
// segment, fills the page and alone writes who is alive; ranks read that, and sleep on their doorbell in it.
// So survivors learn of a death without PMIx, and the launcher can wake every rank of its node.
//
//   offset 0      job_page_header (4 cache lines)
//   then          doorbell[local_size]          one cache line per rank of this node
//   then          std::uint32_t[local_size]     job rank of each local index, ascending
//   then          rank_record[job_size]         8 bytes per rank of the job
//   shm_offset    (page aligned) the shm fabric's area, rank_span bytes per local rank on average
//                 (transport/shm/layout.hpp)
//
// The segment is a memfd and sparse: only touched pages exist, and no name is left behind by a crash.
// This header must not know what the fabric keeps behind shm_offset.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/mapping.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace verbena::base {

inline constexpr std::uint64_t job_page_magic = 0x3165676150626556ULL;  // "VebPage1"
inline constexpr std::uint32_t job_page_version = 1;
inline constexpr std::size_t cache_line = 64;

/// Life of a rank as its launcher saw it. Only ever increases.
enum class rank_state : std::uint8_t {
  starting = 0,  ///< forked or about to be; not joined
  joined = 1,    ///< completed PMIx_Init
  left = 2,      ///< completed PMIx_Finalize, or exited with 0 having never joined
  failed = 3,    ///< exited or was killed while others rely on it
};

/// One rank of the job. Written by the launcher's side only (where no rdmarun made the page: by the rank that leaves): `outcome` first, then `state` with release.
struct rank_record {
  std::atomic<rank_state> state;
  std::uint8_t reserved[3];
  std::uint32_t outcome;  ///< wait(2) status, valid from state `left` on
};
static_assert(sizeof(rank_record) == 8);

/// Where one rank sleeps. Protocol and its argument: runtime/waiter.hpp.
struct alignas(cache_line) doorbell {
  std::atomic<std::uint32_t> word;      ///< the futex; every ring adds one
  std::atomic<std::uint32_t> sleeping;  ///< written by the owner; read by senders after their store
  // What the owner waits for while it sleeps, for others' messages about waits that last too long. A hint: words of two
  // waits may mix. Written by the owner, relaxed.
  std::atomic<std::uint32_t> waits_in;    ///< 0: it does not sleep; else waiting_in
  std::atomic<std::uint32_t> waits_for;   ///< job rank, or ~0: any, or not known
  std::atomic<std::int32_t> waits_label;  ///< tag; -1: any
  std::byte reserved[44];
};
static_assert(sizeof(doorbell) == cache_line);

enum class waiting_in : std::uint32_t { nothing = 0, receive = 1, send = 2, something = 3 };

struct job_page_header {
  // line 0: constant after creation
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t job_size;    ///< ranks of the job
  std::uint32_t local_size;  ///< ranks of this node
  std::uint32_t lanes;       ///< engines per rank; 1 in version 1
  std::uint64_t segment_bytes;
  std::uint64_t shm_offset;
  std::uint64_t rank_span;
  std::uint8_t nonce[16];  ///< random, the same on every node of the job
  // line 1: the launcher's news
  alignas(cache_line)
      std::atomic<std::uint32_t> news;  ///< grows by one after every change of a state or of `ending`
  std::atomic<std::uint32_t> ending;    ///< 1: the job is being ended, do not wait for anybody
  // line 2: ranks of this node that are running, not asleep (a hint for how long to spin)
  alignas(cache_line) std::atomic<std::int32_t> awake;
  // line 3: constant after creation
  alignas(cache_line) std::uint32_t cores;  ///< the ranks of this node share: mask and quota of the launcher
  std::byte reserved[cache_line - 4];
};
static_assert(sizeof(job_page_header) == 4 * cache_line);
static_assert(offsetof(job_page_header, news) == cache_line);
static_assert(offsetof(job_page_header, awake) == 2 * cache_line);

/// What a segment is made for.
struct job_shape {
  std::uint32_t job_size = 1;
  std::vector<std::uint32_t> local_ranks;  ///< job ranks on this node, ascending
  std::uint64_t rank_span = 0;             ///< 0: default_rank_span()
  std::uint32_t cores = 0;                 ///< that the ranks of this node share; 0: usable_cores()
};

/// Bytes of segment address space per rank, so that the whole segment stays below 64 GiB of (sparse) address
/// space.
std::uint64_t default_rank_span(std::uint32_t local_size) noexcept;

/// Creates the sparse memfd and formats the page. Throws error{errc::system} naming the call that failed.
/// The descriptor is close-on-exec; whoever hands it to a rank clears that in the child.
unique_fd create_segment(const job_shape& shape);

/// View of a mapped job page. Does not own the mapping. All calls may be made from any thread.
class job_page {
 public:
  job_page() = default;
  /// Checks magic, version and sizes of an untrusted segment; on failure returns nothing and words it in
  /// `why`.
  static std::optional<job_page> open(const mapping& segment, std::string& why);

  job_page_header& header() const noexcept { return *header_; }
  doorbell& bell(std::uint32_t local_index) const noexcept { return bells()[local_index]; }
  std::span<const std::uint32_t> local_ranks() const noexcept;
  rank_record& record(std::uint32_t job_rank) const noexcept;
  std::byte* base() const noexcept { return reinterpret_cast<std::byte*>(header_); }

  // The launcher's side.
  void announce(std::uint32_t job_rank, rank_state state,
                std::uint32_t outcome) const noexcept;  ///< then wakes all
  void announce_ending() const noexcept;
  void wake_all() const noexcept;

 private:
  explicit job_page(job_page_header* header) noexcept : header_(header) {}
  doorbell* bells() const noexcept { return reinterpret_cast<doorbell*>(header_ + 1); }
  job_page_header* header_ = nullptr;
};

/// Rings a doorbell: changes the word, then wakes its sleeper. The caller has already stored what the sleeper
/// must find.
void ring(doorbell& bell) noexcept;

}  // namespace verbena::base
