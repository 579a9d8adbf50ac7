// A communicator: a group of ranks that talk to each other undisturbed by messages of other groups.
#pragma once

#include <verbena/error.hpp>
#include <verbena/export.hpp>
#include <verbena/layout.hpp>
#include <verbena/matched_message.hpp>
#include <verbena/message_types.hpp>
#include <verbena/request.hpp>
#include <verbena/types.hpp>

#include <concepts>
#include <cstddef>
#include <new>
#include <optional>
#include <ranges>
#include <type_traits>

namespace verbena {

namespace runtime {
class collective_port;
class communicator_access;
class communicator_state;
class engine;
}  // namespace runtime

/// Handle to a group of ranks. Cheap to copy; all copies name the same communicator, which lives as long as
/// its context, or as the owned_communicator that it is a copy of.
///
/// Point to point follows MPI 4.0, chapter 3: messages between two ranks in one communicator do not overtake
/// each other; a receive matches by source and tag, each of which may be a wildcard. Sizes are in bytes.
/// Zero bytes are a message, too; their pointer may be null. Tags are 0 to 2^31 - 1.
/// Unless said otherwise calls throw `error`; one thread at a time per context (thread level `single`). Forms that take
/// std::nothrow do not throw: status::error says how it went, also of arguments that were refused; a request, persistent
/// request or matched message that they return says it by its status or `reason()`.
class VERBENA_API communicator {
 public:
  verbena::rank rank() const noexcept;
  int size() const noexcept;

  /// Blocking send: returns when the buffer may be reused (which is not "delivered"). A small message may wait in a copy
  /// until the receiver has room, which leaves in this rank's later calls; what one receiver holds of unexpected messages
  /// is bounded (VERBENA_UNEXPECTED_BUDGET), and a send beyond that waits until it is received.
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

  /// Synchronous sends: over only when the message is matched (MPI_Ssend).
  void ssend(const void* data, std::size_t bytes, verbena::rank to, verbena::tag label = verbena::tag{0}) const;
  request issend(const void* data, std::size_t bytes, verbena::rank to,
                 verbena::tag label = verbena::tag{0}) const;

  /// Sends and receives at the same time, so that ranks that all do it cannot wait for each other (MPI_Sendrecv). The
  /// buffers are disjoint. If one half fails the other one still ends before the error is thrown.
  status sendrecv(const void* out, std::size_t out_bytes, verbena::rank to, verbena::tag out_label, void* in,
                  std::size_t in_bytes, verbena::rank from = any_source, verbena::tag in_label = any_tag) const;
  /// The same in one buffer: what is sent is copied first, so memory for `bytes` more is needed meanwhile.
  status sendrecv_replace(void* data, std::size_t bytes, verbena::rank to, verbena::tag out_label,
                          verbena::rank from = any_source, verbena::tag in_label = any_tag) const;

  /// The next message that a receive with these arguments would get, left where it is: status::bytes is its size.
  /// `probe` waits until one has arrived.
  status probe(verbena::rank from = any_source, verbena::tag label = any_tag) const;
  std::optional<status> iprobe(verbena::rank from = any_source, verbena::tag label = any_tag) const;
  /// The same, but the message is taken out: no other receive can get it (MPI_Mprobe).
  matched_message mprobe(verbena::rank from = any_source, verbena::tag label = any_tag) const;
  std::optional<matched_message> improbe(verbena::rank from = any_source, verbena::tag label = any_tag) const;

  /// Arguments of a send or receive to be started again and again (MPI 4.0, section 3.9). The buffer is read or written
  /// from each start to the end of its request.
  persistent_request send_init(const void* data, std::size_t bytes, verbena::rank to,
                               verbena::tag label = verbena::tag{0}) const;
  persistent_request recv_init(void* data, std::size_t bytes, verbena::rank from = any_source,
                               verbena::tag label = any_tag) const;

  // The same of memory that does not lie in a row: a base pointer and a layout, which is copied. A receive refuses
  // (invalid_argument) a layout with overlapping blocks.
  void send(const void* base, const layout& form, verbena::rank to, verbena::tag label = verbena::tag{0}) const;
  void ssend(const void* base, const layout& form, verbena::rank to, verbena::tag label = verbena::tag{0}) const;
  status recv(void* base, const layout& form, verbena::rank from = any_source, verbena::tag label = any_tag) const;
  request isend(const void* base, const layout& form, verbena::rank to,
                verbena::tag label = verbena::tag{0}) const;
  request issend(const void* base, const layout& form, verbena::rank to,
                 verbena::tag label = verbena::tag{0}) const;
  request irecv(void* base, const layout& form, verbena::rank from = any_source,
                verbena::tag label = any_tag) const;
  status sendrecv(const void* out, const layout& out_form, verbena::rank to, verbena::tag out_label, void* in,
                  const layout& in_form, verbena::rank from = any_source, verbena::tag in_label = any_tag) const;
  persistent_request send_init(const void* base, const layout& form, verbena::rank to,
                               verbena::tag label = verbena::tag{0}) const;
  persistent_request recv_init(void* base, const layout& form, verbena::rank from = any_source,
                               verbena::tag label = any_tag) const;

  // Without exceptions.
  status send(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
              verbena::tag label = verbena::tag{0}) const noexcept;
  status ssend(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
               verbena::tag label = verbena::tag{0}) const noexcept;
  status recv(std::nothrow_t, void* data, std::size_t bytes, verbena::rank from = any_source,
              verbena::tag label = any_tag) const noexcept;
  request isend(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
                verbena::tag label = verbena::tag{0}) const noexcept;
  request issend(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
                 verbena::tag label = verbena::tag{0}) const noexcept;
  request irecv(std::nothrow_t, void* data, std::size_t bytes, verbena::rank from = any_source,
                verbena::tag label = any_tag) const noexcept;
  status sendrecv(std::nothrow_t, const void* out, std::size_t out_bytes, verbena::rank to, verbena::tag out_label,
                  void* in, std::size_t in_bytes, verbena::rank from = any_source,
                  verbena::tag in_label = any_tag) const noexcept;
  status sendrecv_replace(std::nothrow_t, void* data, std::size_t bytes, verbena::rank to, verbena::tag out_label,
                          verbena::rank from = any_source, verbena::tag in_label = any_tag) const noexcept;
  status probe(std::nothrow_t, verbena::rank from = any_source, verbena::tag label = any_tag) const noexcept;
  /// A status with an error, too, is something found.
  std::optional<status> iprobe(std::nothrow_t, verbena::rank from = any_source,
                               verbena::tag label = any_tag) const noexcept;
  matched_message mprobe(std::nothrow_t, verbena::rank from = any_source,
                         verbena::tag label = any_tag) const noexcept;
  /// So is an empty message with an error.
  std::optional<matched_message> improbe(std::nothrow_t, verbena::rank from = any_source,
                                         verbena::tag label = any_tag) const noexcept;
  persistent_request send_init(std::nothrow_t, const void* data, std::size_t bytes, verbena::rank to,
                               verbena::tag label = verbena::tag{0}) const noexcept;
  persistent_request recv_init(std::nothrow_t, void* data, std::size_t bytes, verbena::rank from = any_source,
                               verbena::tag label = any_tag) const noexcept;
  status send(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
              verbena::tag label = verbena::tag{0}) const noexcept;
  status ssend(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
               verbena::tag label = verbena::tag{0}) const noexcept;
  status recv(std::nothrow_t, void* base, const layout& form, verbena::rank from = any_source,
              verbena::tag label = any_tag) const noexcept;
  request isend(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
                verbena::tag label = verbena::tag{0}) const noexcept;
  request issend(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
                 verbena::tag label = verbena::tag{0}) const noexcept;
  request irecv(std::nothrow_t, void* base, const layout& form, verbena::rank from = any_source,
                verbena::tag label = any_tag) const noexcept;
  status sendrecv(std::nothrow_t, const void* out, const layout& out_form, verbena::rank to, verbena::tag out_label,
                  void* in, const layout& in_form, verbena::rank from = any_source,
                  verbena::tag in_label = any_tag) const noexcept;
  persistent_request send_init(std::nothrow_t, const void* base, const layout& form, verbena::rank to,
                               verbena::tag label = verbena::tag{0}) const noexcept;
  persistent_request recv_init(std::nothrow_t, void* base, const layout& form, verbena::rank from = any_source,
                               verbena::tag label = any_tag) const noexcept;

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
  // What is started takes no temporary range, which would be gone before the operation ends (a std::span is fine).
  template <lasting_message_range Range>
  request isend(Range&& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    return isend(std::ranges::data(data), bytes_of(data), to, label);
  }
  template <lasting_message_range Range>
  request irecv(Range&& data, verbena::rank from = any_source, verbena::tag label = any_tag) const {
    return irecv(std::ranges::data(data), bytes_of(data), from, label);
  }

  template <message_range Range>
  void ssend(const Range& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    ssend(std::ranges::data(data), bytes_of(data), to, label);
  }
  template <message_object Object>
  void ssend(const Object& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    ssend(&data, sizeof data, to, label);
  }
  template <lasting_message_range Range>
  request issend(Range&& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    return issend(std::ranges::data(data), bytes_of(data), to, label);
  }
  /// Objects must outlive the request, so only named ones are taken.
  template <message_object Object>
  request isend(Object& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    return isend(&data, sizeof data, to, label);
  }
  template <message_object Object>
  request issend(Object& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    return issend(&data, sizeof data, to, label);
  }
  template <message_object Object>
  request irecv(Object& data, verbena::rank from = any_source, verbena::tag label = any_tag) const {
    return irecv(&data, sizeof data, from, label);
  }
  template <message_object Object>
  request isend(const Object&& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const = delete;
  template <message_object Object>
  request issend(const Object&& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const = delete;
  template <message_object Object>
  request irecv(const Object&& data, verbena::rank from = any_source, verbena::tag label = any_tag) const = delete;
  template <message_range Out, message_range In>
  status sendrecv(const Out& out, verbena::rank to, verbena::tag out_label, In&& in,
                  verbena::rank from = any_source, verbena::tag in_label = any_tag) const {
    return sendrecv(std::ranges::data(out), bytes_of(out), to, out_label, std::ranges::data(in), bytes_of(in), from,
                    in_label);
  }
  template <message_object Out, message_object In>
  status sendrecv(const Out& out, verbena::rank to, verbena::tag out_label, In& in,
                  verbena::rank from = any_source, verbena::tag in_label = any_tag) const {
    return sendrecv(&out, sizeof out, to, out_label, &in, sizeof in, from, in_label);
  }
  template <message_range Range>
  status sendrecv_replace(Range&& data, verbena::rank to, verbena::tag out_label, verbena::rank from = any_source,
                          verbena::tag in_label = any_tag) const {
    return sendrecv_replace(std::ranges::data(data), bytes_of(data), to, out_label, from, in_label);
  }
  template <message_object Object>
  status sendrecv_replace(Object& data, verbena::rank to, verbena::tag out_label, verbena::rank from = any_source,
                          verbena::tag in_label = any_tag) const {
    return sendrecv_replace(&data, sizeof data, to, out_label, from, in_label);
  }
  template <lasting_message_range Range>
  persistent_request send_init(Range&& data, verbena::rank to, verbena::tag label = verbena::tag{0}) const {
    return send_init(std::ranges::data(data), bytes_of(data), to, label);
  }
  template <lasting_message_range Range>
  persistent_request recv_init(Range&& data, verbena::rank from = any_source, verbena::tag label = any_tag) const {
    return recv_init(std::ranges::data(data), bytes_of(data), from, label);
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
