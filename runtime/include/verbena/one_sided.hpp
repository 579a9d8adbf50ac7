// One-sided access: reading and writing memory of another rank that has registered it, without a receive
// there. On a node and over RDMA the target's processor takes no part; where a fabric cannot do it, packets
// do, and then the target must make progress (any Verbena call of it does).
//
//   region mine = register_memory(world, std::span(table));
//   world.send(mine.key(), other);                     // the key is a value like any other
//   ...
//   put(world, row, other, their_key, offset);         // at the other rank
//   flush(world, other);                               // now it is there
//
// Offsets and sizes are in bytes. Calls throw `error`: access_denied if the key is wrong or revoked, or the
// range does not lie in the region (nothing is moved then, and nobody else is concerned); peer_failed,
// peer_left; invalid_argument for what can be seen here. The request forms report the same by `wait`. One
// thread at a time per context.
//
// Order (MPI 4.0, section 12.7, promises less): a message sent to a rank after a put to it arrives after the
// put is visible there; so does the word of a later put_with_flag. Puts among themselves are in no order
// until they are flushed. Atomics are atomic with respect to each other, whoever does them and over whatever
// fabric, but not with respect to puts or to plain access by the target.
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>
#include <verbena/request.hpp>
#include <verbena/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace verbena {

namespace runtime {
class key_codec;
struct registration;
}  // namespace runtime

/// Names registered memory of one rank to all ranks of the job. A plain value of 40 bytes: copy it, send it,
/// keep it in shared tables. A default one names nothing. It is no secret that protects: it is checked, so
/// that mistakes are found.
class remote_key {
 public:
  /// Of the region, in bytes.
  std::uint64_t size() const noexcept { return size_; }
  friend bool operator==(const remote_key&, const remote_key&) = default;

 private:
  friend class runtime::key_codec;
  std::uint64_t address_ = 0;
  std::uint64_t size_ = 0;
  std::uint32_t native_[3] = {};
  std::uint8_t route_ = 0;
  std::uint8_t kind_ = 0;
  std::uint16_t reserved_ = 0;
  std::uint32_t handle_ = 0;
  std::uint32_t generation_ = 0;
};
static_assert(sizeof(remote_key) == 40 && std::is_trivially_copyable_v<remote_key>);

/// Move-only proof that memory is registered; its destruction revokes the key: accesses that come later are
/// refused. The memory must live as long, and be left to those who have the key as they agree. Ends before
/// its context.
class VERBENA_API region {
 public:
  region() noexcept;  ///< of nothing
  region(region&&) noexcept;
  region& operator=(region&&) noexcept;
  ~region();

  remote_key key() const noexcept;
  explicit operator bool() const noexcept { return held_ != nullptr; }

 private:
  friend class runtime::key_codec;
  std::unique_ptr<runtime::registration> held_;
};

/// Registers memory for all ranks of the job (not only of `on`). Local. Zero bytes are fine.
VERBENA_API region register_memory(communicator on, void* data, std::size_t bytes);

/// Writes `bytes` bytes at `offset` of the region. Returns when `data` may be reused.
VERBENA_API void put(communicator on, const void* data, std::size_t bytes, rank to, const remote_key& key,
                     std::uint64_t offset = 0);
/// Reads; returns when the bytes are here.
VERBENA_API void get(communicator on, void* data, std::size_t bytes, rank from, const remote_key& key,
                     std::uint64_t offset = 0);
/// A put followed by a word that the target can wait for (wait_flag). Zero bytes: the word alone, with any
/// valid key.
VERBENA_API void put_with_flag(communicator on, const void* data, std::size_t bytes, rank to,
                               const remote_key& key, std::uint64_t offset, std::uint64_t word);
/// Adds to the 8-byte word at `offset` (its address there must be a multiple of 8; overflow wraps); returns
/// what it was.
VERBENA_API std::uint64_t fetch_add(communicator on, std::uint64_t value, rank to, const remote_key& key,
                                    std::uint64_t offset = 0);
/// Sets it to `desired` if it is `expected`; returns what it was.
VERBENA_API std::uint64_t compare_swap(communicator on, std::uint64_t expected, std::uint64_t desired,
                                       rank to, const remote_key& key, std::uint64_t offset = 0);

/// The same, started: `data`, or `old`, belongs to the library until the request has ended.
VERBENA_API request iput(communicator on, const void* data, std::size_t bytes, rank to, const remote_key& key,
                         std::uint64_t offset = 0);
VERBENA_API request iget(communicator on, void* data, std::size_t bytes, rank from, const remote_key& key,
                         std::uint64_t offset = 0);
VERBENA_API request iput_with_flag(communicator on, const void* data, std::size_t bytes, rank to,
                                   const remote_key& key, std::uint64_t offset, std::uint64_t word);
VERBENA_API request ifetch_add(communicator on, std::uint64_t value, rank to, const remote_key& key,
                               std::uint64_t offset, std::uint64_t& old);
VERBENA_API request icompare_swap(communicator on, std::uint64_t expected, std::uint64_t desired, rank to,
                                  const remote_key& key, std::uint64_t offset, std::uint64_t& old);

/// Waits until everything this rank has started at `at`, in whatever communicator, has been carried out
/// there.
VERBENA_API void flush(communicator on, rank at);
/// The same for all ranks of the job.
VERBENA_API void flush_all(communicator on);

/// Waits for the next word that came with a put_with_flag of that rank, in the order in which it sent them;
/// the data it came with is visible. Words are between two processes: those of different communicators share
/// one queue.
VERBENA_API std::uint64_t wait_flag(communicator on, rank from);
/// The same if there is one; makes progress once.
VERBENA_API std::optional<std::uint64_t> test_flag(communicator on, rank from);

template <message_range Range>
region register_memory(communicator on, Range&& memory) {
  return register_memory(on, std::ranges::data(memory),
                         std::ranges::size(memory) * sizeof(std::ranges::range_value_t<Range>));
}
template <message_range Range>
void put(communicator on, const Range& data, rank to, const remote_key& key, std::uint64_t offset = 0) {
  put(on, std::ranges::data(data), std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>), to,
      key, offset);
}
template <message_range Range>
void get(communicator on, Range&& data, rank from, const remote_key& key, std::uint64_t offset = 0) {
  get(on, std::ranges::data(data), std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>), from,
      key, offset);
}

}  // namespace verbena
