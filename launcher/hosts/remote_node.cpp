#include "launcher/hosts/remote_node.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace verbena::launcher {

void remote_node::on_frame(frame_kind kind, const std::string& payload) {
  const auto take = [&](auto message, auto&& use) {
    if (read_fields(payload, message))
      use(std::move(message));
    else
      be_gone(fmt::format("host {}: its agent sent something that makes no sense (kind {})", name_,
                          static_cast<int>(kind)));
  };
  switch (kind) {
    case frame_kind::output:
      return take(output_message{}, [this](output_message&& m) {
        owed_ += static_cast<std::uint32_t>(m.bytes.size());
        if (call_.on_output(m.rank, m.which, m.bytes)) give_credit();
      });
    case frame_kind::report:
      return take(report_message{}, [this](report_message&& m) { call_.head.on_report(m.report, m.core); });
    case frame_kind::event:
      return take(event_message{}, [this](event_message&& m) {
        call_.head.on_pmix({m.what, m.rank, m.code, std::move(m.text), 0, {}});
      });
    case frame_kind::no_output:
      return take(no_output_message{}, [this](no_output_message&& m) { call_.head.on_no_output(m.error); });
    case frame_kind::gone:
      return take(gone_message{}, [this](gone_message&& m) {
        be_gone(m.why.empty() ? std::string{} : fmt::format("host {}: {}", name_, m.why));
      });
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

void remote_node::give_credit() {
  if (owed_ == 0 || gone_) return;
  to_.send(credit_message{owed_});
  owed_ = 0;
}

void remote_node::be_gone(const std::string& why) {
  if (gone_) return;
  gone_ = true;
  to_.close();
  call_.head.on_gone(why);
}

}  // namespace verbena::launcher
