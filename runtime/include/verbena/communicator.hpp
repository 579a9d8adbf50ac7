// A communicator: a group of ranks that talk to each other undisturbed by messages of other groups.
#pragma once

#include <verbena/error.hpp>
#include <verbena/export.hpp>
#include <verbena/request.hpp>
#include <verbena/types.hpp>

#include <concepts>
#include <cstddef>
#include <new>
#include <ranges>
#include <type_traits>

namespace verbena {

namespace runtime {
class collective_port;
class communicator_access;
class communicator_state;
class engine;
}  // namespace runtime

/// Anything contiguous and sized whose elements can be moved byte by byte: std::span, std::vector,
/// std::array, ...
template <class Range>
concept message_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>;

/// One object moved byte by byte.
template <class Object>
concept message_object =
    std::is_trivially_copyable_v<Object> && !std::ranges::range<Object> && !std::is_pointer_v<Object>;

/// Handle to a group of ranks. Cheap to copy; all copies name the same communicator, which lives as long as
/// its context, or as the owned_communicator that it is a copy of.
///
/// Point to point follows MPI 4.0, chapter 3: messages between two ranks in one communicator do not overtake
/// each other; a receive matches by source and tag, each of which may be a wildcard. Sizes are in bytes.
/// Unless said otherwise calls throw `error`; one thread at a time per context (thread level `single`).
class VERBENA_API communicator {
 public:
  verbena::rank rank() const noexcept;
  int size() const noexcept;

  /// Blocking send: returns when the buffer may be reused (which is not "delivered").
  void send(const void* data, std::size_t bytes, verbena::rank to,
            verbena::tag label = verbena::tag{0}) const;
  /// Blocking receive of at most `bytes`. A longer message is an error (truncated) that leaves the next one
  /// unharmed.
  status recv(void* data, std::size_t bytes, verbena::rank from = any_source,
              verbena::tag label = any_tag) const;
  /// Starts a send / a receive.
  request isend(const void* data, std::size_t bytes, verbena::rank to,
                verbena::tag label = verbena::tag{0}) const;
  request irecv(void* data, std::size_t bytes, verbena::rank from = any_source,
                verbena::tag label = any_tag) const;

  template <message_range Range>
  void send(const Range& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    send(std::ranges::data(data), bytes_of(data), to, label);
  }
  template <message_object Object>
  void send(const Object& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    send(&data, sizeof data, to, label);
  }
  template <message_range Range>
  status recv(Range&& data, verbena::rank from = any_source, verbena::tag label = any_tag) const {
    return recv(std::ranges::data(data), bytes_of(data), from, label);
  }
  template <message_object Object>
  status recv(Object& data, verbena::rank from = any_source, verbena::tag label = any_tag) const {
    return recv(&data, sizeof data, from, label);
  }
  template <message_range Range>
  request isend(const Range& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    return isend(std::ranges::data(data), bytes_of(data), to, label);
  }
  template <message_range Range>
  request irecv(Range&& data, verbena::rank from = any_source, verbena::tag label = any_tag) const {
    return irecv(std::ranges::data(data), bytes_of(data), from, label);
  }

  /// For the collectives layer; not for programs.
  runtime::collective_port& port() const noexcept;

 private:
  friend class runtime::engine;
  friend class runtime::communicator_access;
  friend class context;
  friend class owned_communicator;
  explicit communicator(runtime::communicator_state* state) noexcept : state_(state) {}

  template <class Range>
  static std::size_t bytes_of(const Range& data) {
    return std::ranges::size(data) * sizeof(std::ranges::range_value_t<Range>);
  }

  runtime::communicator_state* state_;  // owned by the context
};

}  // namespace verbena
