// All checks of the contract, by name, for one kind of fabric.
#pragma once

#include "death_checks.hpp"
#include "one_sided_checks.hpp"
#include "packet_checks.hpp"
#include "progress_checks.hpp"
#include "sharing_checks.hpp"

#include <string_view>
#include <vector>

namespace verbena::contract {

struct check {
  std::string_view name;
  void (*body)(report&);

  report run() const {
    report found;
    try {
      body(found);
    } catch (const abandoned&) {
    }
    return found;
  }
};

template <fabric_set Set>
std::vector<check> all_checks() {
  return {
      {"limits are sane", limits_are_sane<Set>},
      {"packets of all sizes arrive whole", packets_of_all_sizes<Set>},
      {"order is kept per peer", order_is_kept<Set>},
      {"both directions at once", both_directions_at_once<Set>},
      {"ping-pong", ping_pong<Set>},
      {"many peers", many_peers<Set>},
      {"again takes nothing and ends", again_takes_nothing<Set>},
      {"nothing is delivered inside send", nothing_inside_send<Set>},
      {"poll counts events", poll_counts_events<Set>},
      {"poll_from is about one peer", poll_from_is_about_one_peer<Set>},
      {"arm sees what is there", arm_sees_what_is_there<Set>},
      {"poll is bounded", poll_is_bounded<Set>},
      {"put and get move bytes", put_and_get_move_bytes<Set>},
      {"a packet follows a put", packet_follows_put<Set>},
      {"a flag follows its put", flag_follows_its_put<Set>},
      {"atomics are atomic", atomics_are_atomic<Set>},
      {"wrong keys are refused", wrong_keys_are_refused<Set>},
      {"regions are owned once", regions_are_owned_once<Set>},
      {"what is missing is declined", missing_put_is_declined<Set>},
      {"a death at any moment", a_death_at_any_moment<Set>},
      {"two deaths", two_deaths<Set>},
      {"offers move bytes", offers_move_bytes<Set>},
      {"many offers", many_offers<Set>},
      {"forged tickets are refused", forged_tickets_are_refused<Set>},
      {"withdrawn offers are gone", withdrawn_offers_are_gone<Set>},
      {"a death while sharing", a_death_while_sharing<Set>},
  };
}

}  // namespace verbena::contract
