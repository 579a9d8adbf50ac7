#include "capture.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>
#include <tuple>

namespace verbena::tests {
namespace {

constexpr std::size_t ethernet = 14, ipv4 = 20, udp = 8, base_header = 12, checksum = 4;
constexpr std::uint16_t roce_port = 4791;

constexpr std::uint32_t kept_bytes = 128;  // of each packet: Ethernet to RDMA header, and 58 of the payload
constexpr tpacket_req ring_shape{
    .tp_block_size = 1 << 20, .tp_block_nr = 20, .tp_frame_size = 256, .tp_frame_nr = 20 << 12};
constexpr std::size_t ring_bytes = std::size_t{ring_shape.tp_block_size} * ring_shape.tp_block_nr;

std::uint64_t number(std::span<const std::byte> from, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(from[at + i]);
  return value;
}

/// Bytes of what follows the base transport header (table 38). Of other services than the reliable connection nothing is asked.
std::size_t more_headers(std::uint8_t opcode) {
  switch (opcode) {
    case 3:
    case 5:
    case 9:  // immediate data
    case 13:
    case 15:
    case 16:
    case 17:  // acknowledgement
      return 4;
    case 6:
    case 10:
    case 12:  // RDMA
      return 16;
    case 11:
      return 20;
    case 18:  // acknowledgement of an atomic
      return 12;
    case 19:
    case 20:  // atomic
      return 28;
    default:
      return 0;
  }
}

void must(bool worked, const char* what) {
  if (!worked) throw std::runtime_error(fmt::format("capturing packets: {}: {}", what, std::strerror(errno)));
}

}  // namespace

std::optional<roce_packet> read_roce(std::span<const std::byte> frame) {
  constexpr std::size_t headers = ethernet + ipv4 + udp + base_header;
  if (frame.size() < headers || number(frame, 12, 2) != ETH_P_IP || frame[ethernet] != std::byte{0x45} ||
      number(frame, ethernet + 9, 1) != IPPROTO_UDP || number(frame, ethernet + ipv4 + 2, 2) != roce_port)
    return std::nullopt;
  roce_packet p;
  p.from = static_cast<std::uint32_t>(number(frame, ethernet + 12, 4));
  const std::span<const std::byte> bth = frame.subspan(ethernet + ipv4 + udp);
  p.opcode = static_cast<std::uint8_t>(bth[0]);
  p.queue_pair = static_cast<std::uint32_t>(number(bth, 5, 3));
  p.sequence = static_cast<std::uint32_t>(number(bth, 9, 3));
  const std::size_t padding = number(bth, 1, 1) >> 4 & 3, more = more_headers(p.opcode);
  const std::size_t all = number(frame, ethernet + ipv4 + 4, 2);  // of the datagram
  const std::size_t around = udp + base_header + more + padding + checksum;
  if (all < around) return std::nullopt;
  p.payload = all - around;
  const bool has_target = more >= 16 && more <= 20;
  if (bth.size() < base_header + more) return std::nullopt;
  if (has_target)
    p.target = rdma_target{.address = number(bth, 12, 8),
                           .key = static_cast<std::uint32_t>(number(bth, 20, 4)),
                           .bytes = static_cast<std::uint32_t>(number(bth, 24, 4))};
  const auto rest = bth.subspan(base_header + more);
  const auto begins = rest.first(std::min(rest.size(), p.payload));
  p.begins.assign(begins.begin(), begins.end());
  return p;
}

capture::capture(const char* interface) : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
  must(static_cast<bool>(socket_), "socket");
  // UDP over IPv4 to the port: keep the beginning; of all else nothing.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 5),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 36), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, roce_port, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kept_bytes),  BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  must(::setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0, "filter");
  const int version = TPACKET_V2;
  must(::setsockopt(socket_.get(), SOL_PACKET, PACKET_VERSION, &version, sizeof version) == 0 &&
           ::setsockopt(socket_.get(), SOL_PACKET, PACKET_RX_RING, &ring_shape, sizeof ring_shape) == 0,
       "ring");
  void* const at = ::mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket_.get(), 0);
  must(at != MAP_FAILED, "mmap");
  ring_ = static_cast<std::byte*>(at);
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(ETH_P_ALL);  // ETH_P_IP would leave out what this machine sends
  where.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
  must(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0, "bind");
}

capture::~capture() {
  if (ring_ != nullptr) ::munmap(ring_, ring_bytes);
}

std::vector<roce_packet> capture::end() {
  tpacket_stats seen{};
  socklen_t length = sizeof seen;
  must(::getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &seen, &length) == 0, "statistics");
  if (seen.tp_drops != 0)
    throw std::runtime_error(
        fmt::format("capturing packets: no room for {} of {}", seen.tp_drops, seen.tp_packets));
  std::vector<roce_packet> all;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint8_t, std::uint32_t>> known;
  for (std::size_t at = 0; at < ring_bytes; at += ring_shape.tp_frame_size) {
    auto* const head = reinterpret_cast<tpacket2_hdr*>(ring_ + at);
    // Acquire: the kernel sets the word after the frame.
    if ((std::atomic_ref(head->tp_status).load(std::memory_order_acquire) & TP_STATUS_USER) == 0) break;
    if (auto p = read_roce({ring_ + at + head->tp_mac, head->tp_snaplen}))
      if (known.emplace(p->from, p->queue_pair, p->opcode, p->sequence).second) all.push_back(std::move(*p));
  }
  ::munmap(ring_, ring_bytes);
  ring_ = nullptr;
  socket_.reset();
  return all;
}

}  // namespace verbena::tests
