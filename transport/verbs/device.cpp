#include "transport/verbs/device.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace verbena::transport::verbs {
namespace {

struct list_end {
  void operator()(ibv_device** list) const noexcept { ibv_free_device_list(list); }
};

/// Gigabits per second, all lanes together. The codes are those of the port attributes (InfiniBand Architecture
/// Specification, PortInfo).
double rate_gbits(const ibv_port_attr& port) noexcept {
  const auto lanes = [&] {
    switch (port.active_width) {
      case 2:
        return 4;
      case 4:
        return 8;
      case 8:
        return 12;
      case 16:
        return 2;
      default:
        return 1;
    }
  }();
  const double each = [&] {
    switch (port.active_speed) {
      case 2:
        return 5.0;
      case 4:
      case 8:
        return 10.0;
      case 16:
        return 14.0;
      case 32:
        return 25.0;
      case 64:
        return 50.0;
      case 128:
        return 100.0;
      default:
        return 2.5;
    }
  }();
  return lanes * each;
}

bool is_mapped(const ibv_gid& gid) noexcept {
  static constexpr std::array<std::uint8_t, 12> prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(prefix.begin(), prefix.end(), gid.raw);
}

bool is_link_local(const ibv_gid& gid) noexcept {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

/// IPv4 first: it is what administrators set up and look at; then IPv6 that is routed; then link-local.
int preference(const ibv_gid& gid) noexcept {
  return is_mapped(gid) ? 3 : is_link_local(gid) ? 1 : 2;
}

/// False: the table has no entry of RoCE v2.
bool choose_gid(device_choice& c) {
  int best = 0;
  for (int i = 0; i < c.port.gid_tbl_len && i < 256; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(c.context.get(), c.port_number, static_cast<std::uint32_t>(i), &entry, 0) != 0)
      continue;  // empty
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    const int liked = preference(entry.gid);
    if (liked <= best) continue;
    best = liked;
    c.gid = entry.gid;
    c.gid_index = static_cast<std::uint8_t>(i);
  }
  return best != 0;
}

bool is_at(const device_choice& c, std::uint32_t index) noexcept {
  ibv_gid_entry entry{};
  return ibv_query_gid_ex(c.context.get(), c.port_number, index, &entry, 0) == 0 &&
         entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
         std::memcmp(entry.gid.raw, c.gid.raw, sizeof c.gid.raw) == 0;
}

/// What keeps a port from being used; empty: nothing.
std::string refusal(device_choice& c) {
  if (c.context->device->transport_type == IBV_TRANSPORT_IWARP)
    return fmt::format("{} is an iWARP device, whose connections need librdmacm: not in this release",
                       c.name);
  if (ibv_query_port(c.context.get(), c.port_number, &c.port) != 0)
    return fmt::format("{} port {} cannot be asked: {}", c.name, c.port_number, std::strerror(errno));
  if (c.port.state != IBV_PORT_ACTIVE)
    return fmt::format("{} port {} is {}, not ACTIVE: is its link up{}?", c.name, c.port_number,
                       port_state_text(c.port.state), c.ethernet() ? "" : ", and a subnet manager running");
  if (c.ethernet() && !choose_gid(c))
    return fmt::format("{} port {} has no GID of RoCE v2: has its network card an address?", c.name,
                       c.port_number);
  return {};
}

}  // namespace

float device_choice::bandwidth() const noexcept {
  return static_cast<float>(rate_gbits(port) / 8);
}

std::string device_choice::text() const {
  const std::string place = fmt::format("{} port {} ({:g} Gb/s)", name, port_number, rate_gbits(port));
  return ethernet() ? fmt::format("{}, GID {} (RoCE v2, {})", place, gid_index, gid_text(gid))
                    : fmt::format("{}, LID {}", place, port.lid);
}

std::string gid_text(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
  return text.data();
}

bool find_gid_again(device_choice& device) noexcept {
  if (!device.ethernet() || is_at(device, device.gid_index)) return true;
  for (int i = 0; i < device.port.gid_tbl_len && i < 256; ++i)
    if (is_at(device, static_cast<std::uint32_t>(i))) {
      device.gid_index = static_cast<std::uint8_t>(i);
      return true;
    }
  return false;
}

const char* port_state_text(ibv_port_state state) noexcept {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    default:
      return "in no known state";
  }
}

device_choice choose_device(std::string_view wanted) {
  const std::string_view wanted_name = wanted.substr(0, wanted.find(':'));
  const std::string wanted_port{
      wanted.find(':') == std::string_view::npos ? "" : wanted.substr(wanted.find(':') + 1)};
  ibv_fork_init();  // does nothing where the kernel copies pinned pages itself at fork (5.12)
  int count = 0;
  const std::unique_ptr<ibv_device*, list_end> list{ibv_get_device_list(&count)};
  device_choice best;
  if (!list || count == 0) {
    best.why = "this machine has no RDMA device (is its driver's module, or rdma_rxe, loaded?)";
    return best;
  }
  std::string refused;
  int usable = 0;
  for (int i = 0; i < count; ++i) {
    const std::string name = ibv_get_device_name(list.get()[i]);
    if (!wanted_name.empty() && name != wanted_name) continue;
    ibv_device_attr attributes{};
    device_handle probe{ibv_open_device(list.get()[i])};
    if (!probe || ibv_query_device(probe.get(), &attributes) != 0) {
      refused += fmt::format("{}{} cannot be opened: {} (may this user write to /dev/infiniband?)",
                             refused.empty() ? "" : "; ", name, std::strerror(errno));
      continue;
    }
    for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
      if (!wanted_port.empty() && wanted_port != std::to_string(port)) continue;
      device_choice c;
      c.context.reset(probe ? probe.release() : ibv_open_device(list.get()[i]));
      if (!c.context) continue;
      c.attributes = attributes;
      c.port_number = static_cast<std::uint8_t>(port);
      c.name = name;
      if (std::string why = refusal(c); !why.empty()) {
        refused += (refused.empty() ? "" : "; ") + why;
        continue;
      }
      ++usable;
      if (!best.context || c.bandwidth() > best.bandwidth()) best = std::move(c);
    }
  }
  if (best.context)
    best.why = !wanted.empty() ? fmt::format("asked for by VERBENA_DEVICE={}", wanted)
               : usable == 1   ? "the only active port"
                               : fmt::format("the fastest of {} active ports", usable);
  else if (refused.empty())
    best.why = fmt::format("there is no device or port '{}' (VERBENA_DEVICE)", wanted);
  else
    best.why = refused;
  return best;
}

}  // namespace verbena::transport::verbs
