#include "runtime/counters.hpp"

namespace verbena::runtime {

std::span<const counter_row> counter_rows() noexcept {
  static constexpr counter_row rows[] = {
      {"messages_sent", &counters::messages_sent, "messages started by this rank, collectives' included"},
      {"bytes_sent", &counters::bytes_sent, "payload bytes of those"},
      {"messages_received", &counters::messages_received, "messages completed by receives of this rank"},
      {"bytes_received", &counters::bytes_received, "payload bytes written into receive buffers"},
      {"eager_sent", &counters::eager_sent, "messages sent without asking the receiver first"},
      {"rendezvous_sent", &counters::rendezvous_sent, "messages announced and then moved on the receiver's word"},
      {"unexpected", &counters::unexpected, "messages that arrived before a receive for them was posted"},
      {"refused", &counters::refused, "posts a fabric refused for now and that were tried again later"},
      {"over_budget", &counters::over_budget, "eager messages whose data waited here, the receiver's budget being spent"},
      {"kept", &counters::kept, "blocking sends that left a copy here and returned, the receiver having no room"},
      {"grants", &counters::grants, "reports to senders that budget is free again"},
      {"malformed", &counters::malformed, "packets that did not decode and were dropped"},
      {"stale", &counters::stale, "messages for communicators that were freed here, dropped"},
      {"one_sided", &counters::one_sided, "puts, gets and atomics started by this rank"},
      {"registrations_found", &counters::registrations_found, "transfers whose memory a device still knew"},
      {"registrations_made", &counters::registrations_made, "transfers whose memory was registered with a device for them"},
      {"registrations_evicted", &counters::registrations_evicted, "registrations given up for others, the bound being reached"},
  };
  return rows;
}

}  // namespace verbena::runtime
