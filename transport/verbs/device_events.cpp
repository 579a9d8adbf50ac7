#include "transport/verbs/device_events.hpp"

#include <fcntl.h>

#include <array>
#include <exception>
#include <utility>

namespace verbena::transport::verbs {
namespace {

constexpr std::array rows = {
    event_row{IBV_EVENT_CQ_ERR, "CQ_ERR", "the completion queue has failed", consequence::all},
    event_row{IBV_EVENT_QP_FATAL, "QP_FATAL", "the device has given up a queue pair",
              consequence::queue_pair},
    event_row{IBV_EVENT_QP_REQ_ERR, "QP_REQ_ERR", "a request came that cannot be", consequence::queue_pair},
    event_row{IBV_EVENT_QP_ACCESS_ERR, "QP_ACCESS_ERR", "memory was asked for that may not be",
              consequence::queue_pair},
    event_row{IBV_EVENT_COMM_EST, "COMM_EST", "the first packet has come", consequence::none},
    event_row{IBV_EVENT_SQ_DRAINED, "SQ_DRAINED", "all is sent", consequence::none},
    event_row{IBV_EVENT_PATH_MIG, "PATH_MIG", "the connection took another path", consequence::none},
    event_row{IBV_EVENT_PATH_MIG_ERR, "PATH_MIG_ERR", "the other path does not work", consequence::none},
    event_row{IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL", "the device has failed", consequence::all},
    event_row{IBV_EVENT_PORT_ACTIVE, "PORT_ACTIVE", "the port came up", consequence::port_up},
    event_row{IBV_EVENT_PORT_ERR, "PORT_ERR", "the port went down", consequence::port_down},
    event_row{IBV_EVENT_LID_CHANGE, "LID_CHANGE", "the subnet manager gave the port another LID",
              consequence::address},
    event_row{IBV_EVENT_PKEY_CHANGE, "PKEY_CHANGE", "the partition table has changed", consequence::none},
    event_row{IBV_EVENT_SM_CHANGE, "SM_CHANGE", "another subnet manager has taken over", consequence::none},
    event_row{IBV_EVENT_SRQ_ERR, "SRQ_ERR", "the shared receive queue has failed", consequence::all},
    event_row{IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ_LIMIT_REACHED", "few posted receives are left",
              consequence::receives_low},
    event_row{IBV_EVENT_QP_LAST_WQE_REACHED, "QP_LAST_WQE_REACHED",
              "a stopped queue pair has let go of its last receive", consequence::none},
    event_row{IBV_EVENT_CLIENT_REREGISTER, "CLIENT_REREGISTER", "the subnet manager forgot who was there",
              consequence::none},
    event_row{IBV_EVENT_GID_CHANGE, "GID_CHANGE", "the table of GIDs has changed", consequence::address},
    event_row{IBV_EVENT_WQ_FATAL, "WQ_FATAL", "a work queue has failed", consequence::none},
};
constexpr event_row unknown{IBV_EVENT_CLIENT_REREGISTER, "an unknown event",
                            "the device says what this release does not know", consequence::none};

bool is_of_queue_pair(ibv_event_type what) noexcept {
  switch (what) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return true;
    default:
      return false;
  }
}

bool is_of_port(ibv_event_type what) noexcept {
  switch (what) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
      return true;
    default:
      return false;
  }
}

}  // namespace

const event_row& row_of(ibv_event_type what) noexcept {
  for (const event_row& row : rows)
    if (row.what == what) return row;
  return unknown;
}

device_events::device_events(ibv_context& device, std::uint8_t port) noexcept : device_(device), port_(port) {
  ::fcntl(device.async_fd, F_SETFL, ::fcntl(device.async_fd, F_GETFL) | O_NONBLOCK);
}

bool device_events::read() noexcept {
  const std::lock_guard guard(lock_);
  bool found = false;
  for (ibv_async_event event{}; ibv_get_async_event(&device_, &event) == 0;) {
    found = true;
    device_event news{&row_of(event.event_type), 0};
    // Until it is acknowledged its queue pair is not destroyed.
    if (is_of_queue_pair(event.event_type)) news.number = event.element.qp->qp_num;
    if (is_of_port(event.event_type)) news.number = static_cast<std::uint32_t>(event.element.port_num);
    ibv_ack_async_event(&event);
    if (news.number == port_ && news.row->follows == consequence::port_down)
      port_down_.store(true, std::memory_order_relaxed);
    if (news.number == port_ && news.row->follows == consequence::port_up)
      port_down_.store(false, std::memory_order_relaxed);
    if (news.row->follows == consequence::none || (is_of_port(event.event_type) && news.number != port_))
      continue;
    try {
      news_.push_back(news);
      any_.store(true, std::memory_order_relaxed);
    } catch (const std::exception&) {  // completions will tell of it, later and with fewer words
    }
  }
  return found;
}

std::vector<device_event> device_events::take() {
  const std::lock_guard guard(lock_);
  any_.store(false, std::memory_order_relaxed);
  return std::exchange(news_, {});
}

}  // namespace verbena::transport::verbs
