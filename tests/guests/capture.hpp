// What goes over a network card as RoCE v2 (UDP port 4791), both directions: base transport header, RDMA header, sizes. The kernel
// writes the heads of the packets into a ring in memory that takes all of a test, so nothing has to run beside it. Needs root.
//
// Headers: InfiniBand Architecture Specification, volume 1, chapter 9 (transport layer) and annex A17 (RoCE v2).
#pragma once

#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace verbena::tests {

/// Opcodes of reliable connections (table 38, upper three bits 0), as far as somebody asks for them.
enum class rc : std::uint8_t {
  send_first = 0,
  send_middle = 1,
  send_last = 2,
  send_last_immediate = 3,
  send_only = 4,
  send_only_immediate = 5,
  write_first = 6,
  write_middle = 7,
  write_last = 8,
  write_last_immediate = 9,
  write_only = 10,
  write_only_immediate = 11,
  read_request = 12,
};

/// RDMA extended transport header.
struct rdma_target {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t bytes = 0;  ///< of the whole request
};

struct roce_packet {
  std::uint32_t from = 0;  ///< IPv4 address, host order
  std::uint8_t opcode = 0;
  std::uint32_t queue_pair = 0;  ///< where it goes
  std::uint32_t sequence = 0;
  std::size_t payload = 0;        ///< bytes, without padding and checksum
  std::vector<std::byte> begins;  ///< of the payload, as much as was kept
  std::optional<rdma_target> target;

  bool is_send() const noexcept { return opcode <= static_cast<std::uint8_t>(rc::send_only_immediate); }
  bool is_write() const noexcept {
    return opcode >= static_cast<std::uint8_t>(rc::write_first) &&
           opcode <= static_cast<std::uint8_t>(rc::write_only_immediate);
  }
};

/// The packet in an Ethernet frame of which maybe only the beginning is there; nothing if it is no RoCE v2 over IPv4.
std::optional<roce_packet> read_roce(std::span<const std::byte> frame);

/// From its making until `end`. Throws std::runtime_error.
class capture {
 public:
  explicit capture(const char* interface);
  ~capture();
  capture(const capture&) = delete;
  capture& operator=(const capture&) = delete;

  /// All packets, in order; those that were sent again because the first did not arrive come once.
  std::vector<roce_packet> end();

 private:
  base::unique_fd socket_;
  std::byte* ring_ = nullptr;
};

}  // namespace verbena::tests
