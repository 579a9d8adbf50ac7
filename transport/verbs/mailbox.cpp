#include "transport/verbs/mailbox.hpp"

#include "base/clock.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace verbena::transport::verbs {
namespace {

constexpr std::size_t slot_size = 192;  // the device's head and the longest letter
constexpr int completions_per_look = 16;

std::uint32_t random_key() noexcept {
  std::uint32_t value = 0;
  if (::getrandom(&value, sizeof value, 0) != sizeof value)
    value = static_cast<std::uint32_t>(base::steady_now());
  return value & 0x7fffffff;  // the highest bit would mean: the sender's own key
}

}  // namespace

mailbox::mailbox(const device_choice& device, ibv_pd* domain, ibv_comp_channel* channel, std::uint32_t peers)
    : device_(device),
      key_(random_key()),
      receives_(std::clamp(2 * peers, 48U, 512U)),
      sends_(std::clamp(peers, 16U, 256U)) {
  static_assert(head_bytes + letter_bytes <= slot_size);
  completions_.reset(
      ibv_create_cq(device.context.get(), static_cast<int>(receives_ + sends_), nullptr, channel, 0));
  if (!completions_) return;
  slots_ = slot_pool(domain, receives_ + sends_, slot_size);
  if (!slots_) return;
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = completions_.get();
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap.max_send_wr = sends_;
  attributes.cap.max_recv_wr = receives_;
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
  handle_.reset(ibv_create_qp(domain, &attributes));
  free_.reserve(sends_);
  arrived_.reserve(receives_);
  if (handle_ && !start()) handle_.reset();
}

/// From RESET: all receives posted, ready to send.
bool mailbox::start() noexcept {
  ++life_;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = device_.port_number;
  to.qkey = key_;
  if (ibv_modify_qp(handle_.get(), &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0)
    return false;
  to.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(handle_.get(), &to, IBV_QP_STATE) != 0) return false;
  to.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(handle_.get(), &to, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0) return false;
  failed_ = false;
  free_.clear();
  for (std::uint32_t i = 0; i < sends_; ++i) free_.push_back(receives_ + i);
  for (std::uint32_t i = 0; i < receives_; ++i) post_receive(i);
  return true;
}

/// A datagram that cannot leave, as with the port down, stops the queue pair.
void mailbox::restart() noexcept {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RESET;
  ibv_modify_qp(handle_.get(), &to, IBV_QP_STATE);
  start();  // if it cannot, `failed_` stays, and `read` tries again
}

void mailbox::silence() noexcept {
  silent_ = true;
  if (!handle_) return;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RESET;
  ibv_modify_qp(handle_.get(), &to, IBV_QP_STATE);
}

void mailbox::post_receive(std::uint32_t slot) noexcept {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(slots_.at(slot)), slot_size, slots_.key()};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = name(slot);
  wr.sg_list = &piece;
  wr.num_sge = 1;
  if (ibv_post_recv(handle_.get(), &wr, &bad) != 0) failed_ = true;
}

bool mailbox::send(ibv_ah* way, std::uint32_t number, std::uint32_t key,
                   std::span<const std::byte> text) noexcept {
  if (silent_ || failed_) return true;
  if (free_.empty() || text.size() > letter_bytes) return false;
  const std::uint32_t slot = free_.back();
  std::memcpy(slots_.at(slot), text.data(), text.size());
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(slots_.at(slot)), static_cast<std::uint32_t>(text.size()),
                slots_.key()};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = name(slot);
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = way;
  wr.wr.ud.remote_qpn = number;
  wr.wr.ud.remote_qkey = key;
  if (ibv_post_send(handle_.get(), &wr, &bad) == 0)
    free_.pop_back();
  else
    failed_ = true;
  return true;
}

void mailbox::look() {
  if (silent_) return;
  std::array<ibv_wc, completions_per_look> found;
  for (int count = completions_per_look; count == completions_per_look;) {
    count = ibv_poll_cq(completions_.get(), completions_per_look, found.data());
    if (count > 0) armed_ = false;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = found[static_cast<std::size_t>(i)];
      const auto slot = static_cast<std::uint32_t>(wc.wr_id);
      if (wc.wr_id != name(slot)) continue;  // of an older life
      if (wc.status != IBV_WC_SUCCESS)
        failed_ = true;
      else if (slot >= receives_)
        free_.push_back(slot);
      else if (wc.byte_len >= head_bytes && wc.byte_len <= slot_size)
        arrived_.push_back({slot, wc.byte_len - static_cast<std::uint32_t>(head_bytes)});
      else
        post_receive(slot);
    }
  }
}

bool mailbox::arm() noexcept {
  if (silent_) return true;
  if (!armed_) {
    if (ibv_req_notify_cq(completions_.get(), 0) != 0) return false;
    armed_ = true;
  }
  look();
  return arrived_.empty();
}

}  // namespace verbena::transport::verbs
