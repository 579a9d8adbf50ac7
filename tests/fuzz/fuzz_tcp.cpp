// Everything of TCP that decodes foreign bytes: what a rank publishes, the four messages of a handshake from either end, and the
// frames behind it with the session that they drive. The first byte says which; none may be read past its end, and nothing
// may be proven without the secret.
#include "transport/session/session.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/link.hpp"
#include "transport/tcp/wire.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace {

using namespace verbena;
using namespace verbena::transport;
using namespace verbena::transport::tcp;

void demand(bool holds) {
  if (!holds) std::abort();
}

void contacts(std::span<const std::byte> bytes) {
  const auto read = decode_contact(bytes);
  if (!read) return;
  demand(read->port == 0 || (!read->addresses.empty() && read->addresses.size() <= most_addresses));
  const own_addresses mine{{read->addresses.begin(), read->addresses.end()}, {1}};
  demand(choose_ways(mine, read->addresses, true).size() <= most_ways);
  demand(choose_ways(mine, read->addresses, false).size() <= most_ways);
  for (const address& a : read->addresses) static_cast<void>(text_of(a));
  const auto again = decode_contact(encode(*read));
  demand(again && again->addresses == read->addresses && again->port == read->port);
}

/// Feeds one end; `mine` goes on as an endpoint would.
void talk(std::span<const std::byte> bytes, bool as_caller) {
  static const identity mine{make_secret(), "job", 0, {}};
  handshake end = as_caller ? handshake(mine, 1, {}) : handshake(mine);
  while (!bytes.empty() && !end.room().empty()) {
    const std::size_t now = std::min(
        {bytes.size(), end.room().size(), std::size_t{1} + std::to_integer<std::size_t>(bytes[0]) % 64});
    std::copy_n(bytes.begin(), now, end.room().begin());
    bytes = bytes.subspan(now);
    switch (end.got(now)) {
      case handshake::news::none:
        break;
      case handshake::news::named:
        demand(!as_caller && end.peer() != 0);
        end.greet({});
        break;
      case handshake::news::failed:
        demand(end.room().empty());
        return;
      case handshake::news::proven:
      case handshake::news::proposed:
      case handshake::news::answered:
        std::abort();  // nobody told it the secret
    }
  }
}

/// As endpoint::take_frames does it, in pieces of any size.
void frames(std::span<const std::byte> bytes) {
  session::session here(session_of(1));
  session::resume_point unused;
  demand(here.accept(
             {session::resume_point::current_version, 1, 1, 1, 0xffffffff}, unused, 0, [](std::uint64_t) {},
             [](std::uint64_t, session::kind, errc) {}) == session::agreement::agreed);
  std::uint64_t sent = 0, released = 0, accepted = 0;
  std::vector<std::byte> buffer;
  while (!bytes.empty()) {
    const std::size_t now = std::min(bytes.size(), std::size_t{1} + std::to_integer<std::size_t>(bytes[0]));
    buffer.insert(buffer.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(now));
    bytes = bytes.subspan(now);
    if (now % 3 == 0 && here.may_post()) here.packet(++sent, 0);
    std::span<const std::byte> rest(buffer);
    for (;;) {
      frame f;
      const std::span<const std::byte> before = rest;
      const reading what = take_frame(rest, f);
      if (what == reading::malformed) return;
      if (what == reading::partial) {
        demand(rest.size() == before.size() && rest.size() < longest_frame);
        break;
      }
      demand(f.payload.size() <= payload_bytes && rest.size() + f.payload.size() <= before.size());
      for (const std::byte b : f.payload) static_cast<void>(std::to_integer<int>(b));
      const auto release = [&](std::uint64_t cookie) {
        demand((released = std::max(released, cookie)) <= sent);
      };
      const session::verdict heard =
          f.kind == frame_kind::packet
              ? here.hear(1, f.session, 0, release)
              : here.hear_answer(1, {f.session.acknowledged, f.session.acknowledged}, 0, release);
      if (heard == session::verdict::malformed || heard == session::verdict::early) return;
      if (f.kind == frame_kind::packet && heard == session::verdict::accepted)
        demand(f.session.sequence == ++accepted);
    }
    buffer.assign(rest.begin(), rest.end());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span bytes(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0:
      contacts(bytes);
      break;
    case 1:
      talk(bytes, true);
      break;
    case 2:
      talk(bytes, false);
      break;
    default:
      frames(bytes);
      break;
  }
  return 0;
}
