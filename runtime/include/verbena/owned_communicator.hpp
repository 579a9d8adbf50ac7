// A communicator that its holder made and frees, and what can be attached to any communicator: a name, and
// values of libraries that work on it.
#pragma once

#include <verbena/communicator.hpp>
#include <verbena/export.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace verbena {

/// Move-only. Serves everywhere as the cheap handle that it is derived from; those handles end with it. Made
/// by dup, split, split_node and create (communicators.hpp). Ends before its context.
///
/// Freeing is local, and waits for nobody: operations in flight end by their own rules, and only then the
/// communicator's place is used again. A message that its receiver has not received by then is dropped there
/// (MPI 4.0, section 7.4.3, wants none to be left).
class VERBENA_API owned_communicator : public communicator {
 public:
  owned_communicator() noexcept
      : communicator(nullptr) {}  ///< empty: it names no communicator (MPI_COMM_NULL)
  owned_communicator(owned_communicator&& other) noexcept
      : communicator(std::exchange(other.state_, nullptr)) {}
  owned_communicator& operator=(owned_communicator&& other) noexcept;
  ~owned_communicator() { free(); }

  explicit operator bool() const noexcept { return state_ != nullptr; }
  /// The same before its time; afterwards it is empty.
  void free() noexcept;

 private:
  friend class runtime::communicator_access;
  explicit owned_communicator(runtime::communicator_state* state) noexcept : communicator(state) {}
};

/// Names a communicator in messages to people: errors say it (MPI 4.0, section 7.8). Local; not inherited by
/// dup.
VERBENA_API void set_name(communicator on, std::string_view name);
/// Empty if it was not named. Valid until the next set_name.
VERBENA_API std::string_view name(communicator on) noexcept;

/// A place in every communicator for one value of the key's owner (MPI 4.0, section 7.7): what a library
/// keeps per communicator travels with it. Copies of a key are the same key. The hooks outlive the last
/// value.
class VERBENA_API attribute_key {
 public:
  /// dup makes the new communicator `to` out of `from`: returns the value for it, or null for none. May
  /// throw: then dup does, on this rank.
  using copy_hook = void* (*)(communicator from, communicator to, void* value, void* extra);
  /// The communicator, or its value, goes. The communicator may still be used, locally.
  using free_hook = void (*)(communicator on, void* value, void* extra) noexcept;

  /// Null hooks: nothing is copied; nothing is freed.
  explicit attribute_key(copy_hook copy = nullptr, free_hook free = nullptr, void* extra = nullptr);

  /// Takes a value (not null) into `on`; one that was there is freed first.
  void set(communicator on, void* value) const;
  /// Null: there is none.
  void* get(communicator on) const noexcept;
  /// Frees the value, if there is one.
  void erase(communicator on) const noexcept;

  struct hooks;

 private:
  std::shared_ptr<const hooks> hooks_;
};

}  // namespace verbena
