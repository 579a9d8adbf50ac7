#include "transport/verbs/queue_pair.hpp"

#include <algorithm>
#include <cstring>

namespace verbena::transport::verbs {

queue_pair::queue_pair(const device_choice& device, ibv_pd* domain, ibv_cq* completions, ibv_srq* receives,
                       const queue_pair_wishes& wishes)
    : access_(wishes.access), port_(device.port_number) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = completions;
  attributes.srq = receives;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = wishes.sends;
  attributes.cap.max_send_sge = 1;
  // How much a device takes inline is found by asking: less, until it agrees.
  for (std::uint32_t bytes = wishes.inline_bytes;; bytes /= 2) {
    attributes.cap.max_inline_data = bytes;
    handle_.reset(ibv_create_qp(domain, &attributes));
    if (handle_ || bytes == 0) break;
  }
  inline_bytes_ = std::min(attributes.cap.max_inline_data, wishes.inline_bytes);
  if (handle_ && !initialise()) handle_.reset();
}

bool queue_pair::initialise() noexcept {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = port_;
  to.qp_access_flags = access_;
  return ibv_modify_qp(handle_.get(), &to,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

ibv_ah_attr way_to(const device_choice& device, const contact_head& contact) noexcept {
  ibv_ah_attr way{};
  way.port_num = device.port_number;
  if (device.ethernet()) {
    way.is_global = 1;
    std::memcpy(way.grh.dgid.raw, contact.gid, sizeof contact.gid);
    way.grh.sgid_index = device.gid_index;
    way.grh.hop_limit = 64;
  } else {
    way.dlid = contact.lid;
  }
  return way;
}

bool queue_pair::receive_from(const device_choice& device, const contact_head& contact, std::uint32_t number,
                              std::uint32_t start) noexcept {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = static_cast<ibv_mtu>(std::min<int>(device.port.active_mtu, contact.mtu));
  to.dest_qp_num = number;
  to.rq_psn = start;
  to.max_dest_rd_atomic = static_cast<std::uint8_t>(std::clamp(device.attributes.max_qp_rd_atom, 1, 16));
  to.min_rnr_timer = 12;  // 0.64 ms
  to.ah_attr = way_to(device, contact);
  return ibv_modify_qp(handle_.get(), &to,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0;
}

bool queue_pair::begin_sending(const device_choice& device, const contact_head& contact,
                               std::uint32_t start) noexcept {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RTS;
  to.timeout = answer_timeout;
  to.retry_cnt = retry_count;
  to.rnr_retry = receiver_not_ready_retries;
  to.sq_psn = start;
  to.max_rd_atomic = static_cast<std::uint8_t>(
      std::clamp(std::min<int>(device.attributes.max_qp_init_rd_atom, contact.reads), 1, 16));
  posted = retired = 0;
  start_ = start;
  sends_ = true;
  return ibv_modify_qp(handle_.get(), &to,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

std::uint32_t queue_pair::fresh_start() noexcept {
  constexpr std::uint32_t far = 1U << 21;  // of 2^24, of which half count as ahead
  ibv_qp_attr now{};
  ibv_qp_init_attr unused{};
  const bool known = sends_ && ibv_query_qp(handle_.get(), &now, IBV_QP_SQ_PSN, &unused) == 0;
  return start_ = ((known ? now.sq_psn : start_) + far) & 0xffffff;
}

void queue_pair::stop() noexcept {
  if (!handle_) return;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(handle_.get(), &to, IBV_QP_STATE);
}

void queue_pair::silence() noexcept {
  if (!handle_) return;
  sends_ = false;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RESET;
  ibv_modify_qp(handle_.get(), &to, IBV_QP_STATE);
}

bool queue_pair::restart() noexcept {
  silence();
  return initialise();
}

}  // namespace verbena::transport::verbs
