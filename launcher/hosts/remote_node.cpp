#include "launcher/hosts/remote_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::launcher {

void remote_node::on_frame(frame_kind kind, const std::string& payload) {
  // What an agent says concerns ranks of its own host, or it is not believed.
  const auto take_if = [&](auto message, auto&& right, auto&& use) {
    if (read_fields(payload, message) && right(message))
      use(std::move(message));
    else
      be_gone(fmt::format("host {}: its agent sent something that makes no sense (kind {})", name_,
                          static_cast<int>(kind)));
  };
  const auto take = [&](auto message, auto&& use) {
    take_if(
        std::move(message), [](const auto&) { return true; }, use);
  };
  switch (kind) {
    case frame_kind::output:
      return take_if(
          output_message{},
          [this](const output_message& m) { return is_here(m.rank) && m.which < owed_.size(); },
          [this](output_message&& m) {
            owed_[m.which] += static_cast<std::uint32_t>(m.bytes.size());
            if (call_.on_output(m.rank, m.which, m.bytes)) give_credit(m.which);
          });
    case frame_kind::report:
      return take_if(
          report_message{}, [this](const report_message& m) { return is_here(m.report.rank); },
          [this](report_message&& m) { call_.head.on_report(m.report, m.core); });
    case frame_kind::event:
      return take_if(
          event_message{}, [this](const event_message& m) { return is_here(m.rank); },
          [this](event_message&& m) {
            call_.head.on_pmix({m.what, m.rank, m.code, std::move(m.text), 0, {}});
          });
    case frame_kind::no_output:
      return take(no_output_message{}, [this](no_output_message&& m) { call_.head.on_no_output(m.error); });
    case frame_kind::gone:
      return take(gone_message{}, [this](gone_message&& m) {
        be_gone(m.why.empty() ? std::string{} : fmt::format("host {}: {}", name_, m.why));
      });
    case frame_kind::input_taken:
      return take_if(
          input_taken_message{},
          [this](const input_taken_message& m) { return on_input_taken_ && on_input_taken_(m.bytes, m.closed); },
          [](input_taken_message&&) {});
    case frame_kind::fence:
      return take(fence_message{}, [this](fence_message&& m) { call_.on_fence(std::move(m)); });
    case frame_kind::modex_wanted:
      return take(modex_wanted_message{}, [this](modex_wanted_message&& m) { call_.on_modex_wanted(m); });
    case frame_kind::modex_ready:
      return take(modex_ready_message{}, [this](modex_ready_message&& m) { call_.on_modex_ready(m); });
    default:
      return be_gone(fmt::format("host {}: its agent sent a message of kind {}, which has no place here",
                                 name_, static_cast<int>(kind)));
  }
}

void remote_node::on_closed(int error) {
  if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH)
    return be_gone(fmt::format("host {}: not reached any more: {}", name_, std::strerror(error)));
  be_gone(fmt::format(
      "host {}: the connection to rdmarun's agent there is gone{}{}: was it killed, or the host shut down?",
      name_, error == 0 ? "" : ": ", error == 0 ? "" : std::strerror(error)));
}

void remote_node::give_credit(unsigned which) {
  if (owed_.at(which) == 0 || gone_) return;
  to_.send(credit_message{static_cast<std::uint8_t>(which), owed_[which]});
  owed_[which] = 0;
}

bool remote_node::is_here(std::uint32_t rank) const {
  return std::binary_search(ranks_.begin(), ranks_.end(), rank);
}

void remote_node::be_gone(const std::string& why) {
  if (gone_) return;
  gone_ = true;
  to_.close();
  call_.head.on_gone(why);
}

}  // namespace verbena::launcher
