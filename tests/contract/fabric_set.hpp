// What the contract suite needs to know about a kind of fabric: how to make N connected endpoints of it in
// this process, and how time passes for them. One fixture per fabric models this concept; adding a fabric to
// the suite is writing one and naming it in all_sets.hpp.
#pragma once

#include "transport/fabric.hpp"

#include <concepts>
#include <cstdint>

namespace verbena::contract {

template <class Set>
concept fabric_set = std::constructible_from<Set, std::uint32_t> &&
    transport::fabric<typename Set::fabric_type> && requires(Set& set, std::uint32_t i) {
  { Set::name } -> std::convertible_to<const char*>;
  /// Most endpoints it can make (1 for loopback).
  { Set::most } -> std::convertible_to<std::uint32_t>;
  /// After this many rounds in which no endpoint reported anything and no time passed, nothing more comes.
  { Set::quiet_rounds } -> std::convertible_to<int>;
  /// Whether `kill` works: the process behind an endpoint dies; it is not polled any more.
  { Set::can_kill } -> std::convertible_to<bool>;
  {set.kill(i)};
  { set.fabric(i) } -> std::same_as<typename Set::fabric_type&>;
  /// Lets something happen outside the endpoints' polls. False: nothing did.
  { set.pass_time() } -> std::same_as<bool>;
  { set.now() } -> std::same_as<base::nanoseconds>;
};

}  // namespace verbena::contract
