// What of verbs comes from outside as bytes: what a rank publishes, and letters about connections that broke. The first byte
// says which; what is believed must be sane. A letter that is believed reaches the machine that mends a link, at every stage of
// it, and the judgement whether it fits.
#include "transport/verbs/mending.hpp"
#include "transport/verbs/wire.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {

using namespace verbena::transport::verbs;

void demand(bool holds) {
  if (!holds) std::abort();
}

/// A link at some stage hears it: an answer must fit to the stage, and numbers of connections never go back.
void hear(const letter& news, unsigned how) {
  constexpr verbena::base::nanoseconds now = verbena::base::second;
  mending m;
  letter first;
  first.what = letter_kind::broken;
  first.incarnation = news.incarnation + how / 4 % 3 - 1;  // an older one, the same, a newer one
  if (first.incarnation == 0) first.incarnation = 1;
  const unsigned stage = how % 4;
  m.adopt(first.incarnation - 1);
  if (stage != 0) m.break_off(now, now, now);
  if (stage > 1) m.drained(now);
  if (stage > 2 && m.hear(first, now) == deed::connect) m.connected(connecting::yes, now);
  const std::uint32_t before = m.incarnation();
  const mending::stage was = m.is();
  const deed answer = m.hear(news, now);
  demand(static_cast<std::int32_t>(m.incarnation() - before) >= 0);
  demand(answer != deed::give_up && answer != deed::say_broken);
  switch (was) {
    case mending::stage::up:
      demand(m.is() == was && m.incarnation() == before);
      demand(answer == deed::nothing || answer == deed::break_off || answer == deed::say_up);
      break;
    case mending::stage::draining:
      demand(m.is() == was && (answer == deed::nothing || answer == deed::given_up));
      break;
    case mending::stage::asking:
      demand(m.is() == was &&
             (answer == deed::nothing || answer == deed::connect || answer == deed::given_up));
      break;
    case mending::stage::listening:
      demand((answer == deed::go_on || answer == deed::go_on_and_say_up) == (m.is() == mending::stage::up));
      demand((answer == deed::stop) == (m.is() == mending::stage::draining));
      break;
  }
}

void make_right(letter& text, std::uint64_t to, std::uint32_t ranks) {
  text.magic = letter::right_magic;
  text.what = static_cast<letter_kind>(1 + static_cast<std::uint32_t>(text.what) % 4);
  text.to = to;
  text.by |= 1;
  text.rank %= ranks;
  text.start &= 0xffffff;
  text.number |= 1;
  if (text.incarnation == 0) text.incarnation = 1;
}

/// What fits leads to nothing that was not sent, and to no packet that was not kept.
void compare(const letter& news, unsigned how) {
  standing here;
  here.given_back = news.arrived - how % 5;
  here.sent = here.given_back + how / 5 % 9;
  here.lease = 8;
  here.arrived = news.sent - how / 3 % 11;
  here.flags_given_back = news.flags_arrived - how % 3;
  here.flags_sent = here.flags_given_back + how / 7 % 6;
  here.flags_under_way = how / 2 % 4;
  if (!fits(here, news)) return;
  demand(here.sent - news.arrived <= here.sent - here.given_back);
  demand(news.sent - here.arrived <= here.lease);
  demand(here.flags_sent - news.flags_arrived <= here.flags_under_way);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  const std::uint32_t ranks = data[1] % 8 + 1U;
  if (data[0] % 2 == 0) {
    const auto read = decode(bytes, data[0] / 2 % 8U, ranks);
    if (!read || read->head.ranks == 0) return 0;
    demand(read->head.ranks == ranks && data[0] / 2 % 8U < ranks && read->number != 0);
    demand(read->head.lease != 0 && read->head.mtu >= 1 && read->head.mtu <= 5);
    demand(read->head.mailbox == 0 || read->head.identity != 0);
  } else {
    // Every second one is made right where else nearly all would be refused.
    letter made;
    const bool is_made = data[0] / 2 % 2 != 0 && bytes.size() >= sizeof made;
    if (is_made) {
      std::memcpy(&made, bytes.data(), sizeof made);
      make_right(made, data[0] / 2, ranks);
    }
    const auto text = is_made ? std::as_bytes(std::span(&made, 1)) : bytes;
    const auto read = decode_letter(text, data[0] / 2, ranks);
    demand(read || !is_made);
    if (!read) return 0;
    demand(text.size() == sizeof(letter) && read->to == data[0] / 2 && read->by != 0 && read->rank < ranks);
    demand(read->what >= letter_kind::broken && read->what <= letter_kind::given_up);
    demand(read->start < 1U << 24 && read->number != 0 && read->incarnation != 0);
    hear(*read, data[1] / 8U);
    compare(*read, data[0] + 256U * data[1]);
  }
  return 0;
}
