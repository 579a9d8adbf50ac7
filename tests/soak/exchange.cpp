// A round of messages: everybody knows all of them; each rank sends its own in the order of the list and receives in
// one of five ways. Messages of one sender that match the same receives do not overtake each other, so what each
// receive must have got follows from the order in which the receives were posted.
#include "tests/soak/traffic.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace verbena::soak {
namespace {

struct letter {
  int from, to, label;
  std::size_t size;
  std::uint64_t key;
  enum class way : std::uint8_t { plain, synchronous, persistent } how;
};

enum class style : std::uint8_t { exact, any_source, any_tag, anything, probing, count };

std::vector<letter> make_letters(dice& d, int ranks) {
  std::vector<letter> all(1 + d.below(40));
  for (letter& one : all) {
    const auto n = static_cast<std::uint64_t>(ranks);
    one = {static_cast<int>(d.below(n)),
           static_cast<int>(d.below(n)),
           static_cast<int>(d.below(4)),
           d.size(d.one_in(50) ? 4u << 20 : 200u << 10),
           d.roll(),
           static_cast<letter::way>(d.below(3))};
  }
  return all;
}

/// What of the letters to one rank is still to come, by the order in which it must.
class mailbox {
 public:
  explicit mailbox(style how) : how_(how) {}
  void expect(const letter& one) { queues_[place(one.from, one.label)].push_back(&one); }
  const letter* take(int from, int label) {
    auto& queue = queues_[place(from, label)];
    if (queue.empty()) return nullptr;
    const letter* first = queue.front();
    queue.pop_front();
    return first;
  }

 private:
  /// Wildcard tags see the sender's letters in one row.
  std::pair<int, int> place(int from, int label) const {
    return {from, how_ == style::exact || how_ == style::any_source ? label : -1};
  }
  style how_;
  std::map<std::pair<int, int>, std::deque<const letter*>> queues_;
};

void check(traffic& t, mailbox& box, const status& got, const guarded_bytes& bytes) {
  const letter* sent = box.take(got.source.value, got.label.value);
  t.expect(sent != nullptr, "a message that nobody sent");
  t.expect(sent->label == got.label.value, "messages overtook each other: another tag");
  t.expect(sent->size == got.bytes, "messages overtook each other, or another size");
  t.expect(bytes.holds(sent->key, got.bytes), "another byte in a message");
  t.add(count::receives);
  t.bytes += got.bytes;
}

void receive_by_probing(traffic& t, communicator on, mailbox& box, std::size_t expected) {
  while (expected != 0) {
    std::optional<matched_message> found = on.improbe();
    if (!found) continue;
    guarded_bytes bytes(found->bytes());
    check(t, box, found->recv(bytes.data(), bytes.size()), bytes);
    t.add(count::probed);
    --expected;
  }
}

struct posted {
  std::vector<guarded_bytes> into;
  std::vector<request> requests;
};

/// Posts a receive for each letter, in an order of its own where that is allowed.
posted post(traffic& t, communicator on, std::vector<const letter*> mine, style how, dice& own) {
  posted all;
  std::size_t largest = 0;
  for (const letter* one : mine) largest = std::max(largest, one->size);
  if (how == style::exact)
    for (std::size_t i = mine.size(); i > 1; --i) std::swap(mine[i - 1], mine[own.below(i)]);
  all.into.reserve(mine.size());
  for (const letter* one : mine) {
    all.into.emplace_back(largest);
    const bool all_sources = how == style::any_source || how == style::anything;
    const bool all_tags = how == style::any_tag || how == style::anything;
    t.add(count::from_any_source, all_sources);
    t.add(count::any_tag, all_tags);
    all.requests.push_back(on.irecv(all.into.back().data(), largest,
                                    all_sources ? any_source : rank{one->from},
                                    all_tags ? any_tag : tag{one->label}));
  }
  return all;
}

void finish(traffic& t, mailbox& box, posted& all, dice& own) {
  std::vector<status> results(all.requests.size());
  switch (own.below(4)) {
    case 0:
      wait_all(all.requests, results);
      break;
    case 1:
      while (const auto one = wait_any(all.requests)) results[one->index] = one->result;
      break;
    case 2:
      for (auto some = wait_some(all.requests); !some.empty(); some = wait_some(all.requests))
        for (const completion& one : some) results[one.index] = one.result;
      break;
    default:
      for (std::size_t i = all.requests.size(); i-- > 0;) results[i] = all.requests[i].wait();
  }
  for (std::size_t i = 0; i < results.size(); ++i) check(t, box, results[i], all.into[i]);
}

}  // namespace

void exchange_messages(traffic& t, communicator on, std::uint64_t salt) {
  dice d = t.common(salt), own = t.own(salt);
  const std::vector<letter> letters = make_letters(d, on.size());
  const auto how = static_cast<style>(own.below(static_cast<std::uint64_t>(style::count)));
  mailbox box{how};
  std::vector<const letter*> mine;
  for (const letter& one : letters)
    if (one.to == on.rank().value) {
      mine.push_back(&one);
      box.expect(one);
    }
  const bool receive_first = how != style::probing && own.one_in(2);
  posted receives;
  if (receive_first) receives = post(t, on, mine, how, own);

  std::deque<guarded_bytes> out;
  std::deque<persistent_request> prepared;
  std::vector<request> sends;
  // Who has posted its receives may block in a send: whoever waits for it gets on.
  const bool blocking = receive_first && own.one_in(3);
  for (const letter& one : letters) {
    if (one.from != on.rank().value) continue;
    guarded_bytes& bytes = out.emplace_back(one.size);
    bytes.fill(one.key);
    const rank to{one.to};
    const tag label{one.label};
    t.add(one.how == letter::way::synchronous ? count::synchronous_sends : count::sends);
    if (one.how == letter::way::persistent) {
      t.add(count::persistent);
      sends.push_back(prepared.emplace_back(on.send_init(bytes.data(), one.size, to, label)).start());
    } else if (one.how == letter::way::synchronous) {
      if (blocking)
        on.ssend(bytes.data(), one.size, to, label);
      else
        sends.push_back(on.issend(bytes.data(), one.size, to, label));
    } else if (blocking) {
      on.send(bytes.data(), one.size, to, label);
    } else {
      sends.push_back(on.isend(bytes.data(), one.size, to, label));
    }
  }
  if (how == style::probing) {
    receive_by_probing(t, on, box, mine.size());
  } else {
    if (!receive_first) receives = post(t, on, mine, how, own);
    finish(t, box, receives, own);
  }
  wait_all(sends);
  for (const guarded_bytes& bytes : out) t.expect(bytes.holds(0, 0), "a send wrote beyond its buffer");
  barrier(on);  // wildcards must not take what belongs to the next round
}

}  // namespace verbena::soak
