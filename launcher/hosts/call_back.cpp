#include "launcher/hosts/call_back.hpp"

#include "base/clock.hpp"
#include "base/number.hpp"
#include "launcher/words.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace verbena::launcher {
namespace {

constexpr std::string_view order_word = "verbena-agent";

/// One place and how far the talk with it is.
struct attempt {
  std::string place;
  base::unique_fd socket;
  bool connected = false;
  bool claimed = false;
  nonce ours{}, theirs{};
  std::string heard;
  std::string failure;

  void fail(std::string text) {
    failure = std::move(text);
    socket.reset();
  }
};

void begin(attempt& one) {
  const std::size_t space = one.place.find(' ');
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (space == std::string::npos ||
      ::getaddrinfo(one.place.substr(0, space).c_str(), one.place.c_str() + space + 1, &wanted, &list) != 0)
    return one.fail("no address");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{list, ::freeaddrinfo};
  one.socket.reset(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!one.socket) return one.fail(std::strerror(errno));
  if (::connect(one.socket.get(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS)
    one.fail(std::strerror(errno));
}

/// True if rdmarun has proven itself there.
bool go_on(attempt& one, const agent_order& order) {
  if (!one.connected) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(one.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      one.fail(std::strerror(error));
      return false;
    }
    one.connected = true;
  }
  const std::size_t wanted = one.claimed ? answer_bytes : challenge_bytes;
  std::array<char, challenge_bytes> bytes;
  const long count = ::recv(one.socket.get(), bytes.data(), wanted - one.heard.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    one.fail(count == 0 ? "closed by the other side" : std::strerror(errno));
    return false;
  }
  one.heard.append(bytes.data(), static_cast<std::size_t>(count));
  if (one.heard.size() < wanted) return false;
  const std::span<const unsigned char> heard{reinterpret_cast<const unsigned char*>(one.heard.data()),
                                             one.heard.size()};
  if (one.claimed) {
    if (check_answer(order.secret, heard, one.theirs, one.ours, one.place)) return true;
    one.fail("whoever answers there does not know the job");
    return false;
  }
  const std::optional<nonce> theirs = read_challenge(heard);
  if (!theirs) {
    one.fail("something else answers there");
    return false;
  }
  one.theirs = *theirs;
  one.ours = draw_nonce();
  one.heard.clear();
  one.claimed = true;
  const std::string claim = make_claim(order.secret, order.index, one.theirs, one.ours, one.place);
  if (::send(one.socket.get(), claim.data(), claim.size(), MSG_NOSIGNAL) != static_cast<long>(claim.size()))
    one.fail("closed by the other side");
  return false;
}

}  // namespace

std::string write_order(const agent_order& order) {
  return fmt::format("{} {} {} {} {}\n", order_word, order.version, order.index, to_hex(order.secret),
                     joined(order.places, " "));
}

std::optional<agent_order> read_order(std::string_view line) {
  const std::vector<std::string> words = split_words(line);
  agent_order order;
  if (words.size() < 6 || words.size() % 2 != 0 || words[0] != order_word ||
      !base::parse_number(words[1], order.version) || !base::parse_number(words[2], order.index))
    return std::nullopt;
  const std::optional<job_secret> secret = from_hex(words[3]);
  if (!secret) return std::nullopt;
  order.secret = *secret;
  for (std::size_t i = 4; i < words.size(); i += 2)
    order.places.push_back(fmt::format("{} {}", words[i], words[i + 1]));
  return order;
}

base::unique_fd call_back(const agent_order& order, base::nanoseconds patience, std::string& why) {
  std::vector<attempt> attempts;
  for (const std::string& place : order.places) {
    attempts.emplace_back().place = place;
    begin(attempts.back());
  }
  const base::nanoseconds limit = base::steady_now() + patience;
  for (base::nanoseconds left; (left = limit - base::steady_now()) > 0;) {
    std::vector<pollfd> waited;
    for (const attempt& each : attempts)
      if (each.socket)
        waited.push_back({each.socket.get(), static_cast<short>(each.connected ? POLLIN : POLLOUT), 0});
    if (waited.empty()) break;
    ::poll(waited.data(), waited.size(), static_cast<int>(left / base::millisecond) + 1);
    for (const pollfd& each : waited) {
      if (each.revents == 0) continue;
      const auto at = std::find_if(attempts.begin(), attempts.end(),
                                   [&](const attempt& a) { return a.socket.get() == each.fd; });
      if (go_on(*at, order)) return std::move(at->socket);
    }
  }
  for (const attempt& each : attempts)
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", each.place,
                       each.failure.empty() ? "no answer" : each.failure);
  return {};
}

}  // namespace verbena::launcher
