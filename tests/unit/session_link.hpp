// Two sessions and a link between them that a seed makes lose, double, reorder and break; and what a naive
// observer may demand: every packet once and in order, nothing kept without bound, one-sided operations carried
// out as often as they may be and in their place. `Session` is transport's session or one that is wrong in one
// way.
#pragma once

#include "transport/session/session.hpp"
#include "transport/sim/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace verbena::tests {

namespace session = transport::session;
using transport::session_header;

struct trouble {
  std::uint32_t loss = 0, twice = 0, reorder = 0;  ///< per million
  std::uint32_t breaks = 0;                        ///< per million steps
  std::uint32_t one_sided = 0;                     ///< per million posts; on ordered links only
  std::uint32_t start = 1;                         ///< the first number
  bool one_way = false;                            ///< nothing but answers goes back
};

template <class Session>
class session_link {
 public:
  static constexpr std::uint32_t most_retained = 16;

  session_link(std::uint64_t seed, const trouble& t)
      : random_(seed),
        trouble_(t),
        ordered_(t.loss + t.twice + t.reorder == 0),
        ends_{end(options()), end(options())} {
    for (end& e : ends_) e.talk.start_at(t.start, t.start);
  }

  /// What is wrong; empty if nothing is.
  std::string play(std::uint32_t packets) {
    for (std::uint32_t step = 0; step < 400'000 && complaint_.empty(); ++step) {
      now_ += random_.below(2000);
      if (random_.chance(trouble_.breaks)) break_off();
      end& e = ends_[random_.below(2)];
      switch (random_.below(4)) {
        case 0:
          post(e, packets);
          break;
        case 1:
          deliver(other(e), e);
          break;
        case 2:
          connect();
          break;
        default:
          poll(e);
          break;
      }
      if (finished(packets)) return complaint_;
    }
    if (complaint_.empty())
      complaint_ = fmt::format("{} and {} of {} packets arrived and nothing more comes", ends_[0].got,
                               ends_[1].got, packets);
    return complaint_;
  }

  std::uint64_t resumes = 0, again = 0, refused = 0, stale = 0, duplicates = 0, early = 0, bare = 0,
                unknown = 0, repeated = 0;

 private:
  struct operation {
    session::kind what = session::kind::put;
    std::uint32_t behind = 0;  ///< packets posted before it
    std::uint32_t carried_out = 0;
    std::optional<errc> ended;
    std::uint64_t position = 0;
  };
  struct end {
    explicit end(const session::session_options& o) : talk(o) {}
    Session talk;
    std::uint32_t posted = 0, got = 0;
    std::map<std::uint64_t, std::uint32_t> kept;  ///< packet number by cookie
    std::vector<operation> operations;            ///< cookie: place here + first_operation
  };
  static constexpr std::uint64_t first_operation = 1ULL << 40;
  enum class sort : std::uint8_t { packet, bare, operation, result };
  struct moving {
    sort what = sort::packet;
    std::uint32_t incarnation = 0;
    session_header head;
    std::uint64_t number = 0;  ///< of a packet, or cookie of an operation
  };

  session::session_options options() const {
    session::session_options o;
    o.identity = 77;
    o.most_retained = o.peer_retains = most_retained;
    o.ordered_link = ordered_;
    o.answers = {4, 20'000};
    if (!ordered_) o.repeats.after = 50'000;
    return o;
  }
  end& other(end& e) { return &e == &ends_[0] ? ends_[1] : ends_[0]; }
  std::deque<moving>& to(const end& e) { return way_[static_cast<std::size_t>(&e - ends_.data())]; }

  void complain(std::string text) {
    if (complaint_.empty()) complaint_ = std::move(text);
  }
  bool finished(std::uint32_t packets) {
    for (end& e : ends_) {
      if (e.got < (trouble_.one_way && &e == &ends_[0] ? 0 : packets) || !e.kept.empty()) return false;
      for (const operation& o : e.operations)
        if (!o.ended) return false;
    }
    return true;
  }

  void put_on(end& target, const moving& m) {
    auto& way = to(target);
    if (ordered_ && cut_) return;
    if (random_.chance(trouble_.loss)) return;
    for (int copies = random_.chance(trouble_.twice) ? 2 : 1; copies > 0; --copies) {
      const bool late = !way.empty() && random_.chance(trouble_.reorder);
      way.insert(late ? way.end() - 1 -
                            random_.below(static_cast<std::uint32_t>(std::min<std::size_t>(way.size(), 5)))
                      : way.end(),
                 m);
    }
  }

  void post(end& e, std::uint32_t packets) {
    if (trouble_.one_way && &e == &ends_[1]) return;
    if (e.posted == packets) return;
    if (!e.talk.may_post()) {
      ++refused;
      return;
    }
    if (random_.chance(trouble_.one_sided)) {
      operation o;
      o.what = static_cast<session::kind>(random_.between(2, 5));
      o.behind = e.posted;
      const std::uint64_t cookie = first_operation + e.operations.size();
      o.position = e.talk.one_sided(o.what, cookie);
      e.operations.push_back(o);
      return put_on(other(e), {sort::operation, e.talk.incarnation(), {}, cookie});
    }
    const std::uint64_t cookie = next_cookie_++;
    const session_header head = e.talk.packet(cookie, now_);
    e.kept[cookie] = e.posted;
    put_on(other(e), {sort::packet, e.talk.incarnation(), head, e.posted++});
    if (e.kept.size() > most_retained) complain("more is retained than may be");
  }

  auto release(end& e) {
    return [this, &e](std::uint64_t cookie) {
      if (e.kept.erase(cookie) != 1) complain("a packet is released that is not retained");
    };
  }
  void finish(end& e, std::uint64_t cookie, errc error) {
    operation& o = e.operations[cookie - first_operation];
    if (o.ended) complain("an operation ends twice");
    o.ended = error;
    if (error == errc::outcome_unknown) ++unknown;
    const bool once = o.what == session::kind::atomic || o.what == session::kind::flag;
    if (error == errc::outcome_unknown && !once) complain("a put or get ends with outcome_unknown");
    if (error == errc::success && o.carried_out == 0)
      complain("an operation ends well that was not carried out");
  }

  void deliver(end& from, end& at) {
    auto& way = to(at);
    if (way.empty()) return;
    const moving m = way.front();
    // A connection brings nothing before it is agreed upon at this end.
    if (ordered_ && !cut_ && !at.talk.up() && m.incarnation == at.talk.incarnation()) return;
    way.pop_front();
    switch (m.what) {
      case sort::operation: {
        if (m.incarnation != from.talk.incarnation() || !from.talk.up()) return;
        operation& o = from.operations[m.number - first_operation];
        ++o.carried_out;
        if (o.what == session::kind::put && at.got > o.behind)
          complain("a put is carried out behind a later packet");
        if (o.what != session::kind::get && o.what != session::kind::put && o.carried_out > 1)
          complain("an operation that must be carried out once is carried out again");
        return put_on(from, {sort::result, m.incarnation, {}, m.number});
      }
      case sort::result:
        if (m.incarnation != at.talk.incarnation() || !at.talk.up()) return;
        at.talk.ended(at.operations[m.number - first_operation].position);
        return finish(at, m.number, errc::success);
      case sort::bare:
        if (at.talk.hear_answer(m.incarnation, {m.head.acknowledged, m.head.sequence}, now_, release(at)) ==
            session::verdict::malformed)
          complain("a bare answer is called malformed");
        return;
      case sort::packet:
        switch (at.talk.hear(m.incarnation, m.head, now_, release(at))) {
          case session::verdict::accepted: {
            if (m.head.sequence == 0) return complain("a packet has number 0");
            if (m.number != at.got)
              return complain(fmt::format("packet {} came where {} was due", m.number, at.got));
            ++at.got;
            // What was posted before this packet must have been carried out.
            for (const operation& o : from.operations)
              if (o.behind <= m.number && o.carried_out == 0 && o.what != session::kind::get && !o.ended)
                complain("a packet overtook an operation");
            return;
          }
          case session::verdict::malformed:
            return complain("a packet is called malformed");
          case session::verdict::stale:
            ++stale;
            return;
          case session::verdict::early:
            ++early;
            return;
          case session::verdict::duplicate:
            ++duplicates;
            return;
        }
    }
  }

  void poll(end& e) {
    if (!e.talk.look(now_)) complain("given up");
    again += e.talk.send_again([&](const session::entry& kept, session_header head) {
      if (random_.below(4) == 0) return false;  // no room just now
      if (kept.what == session::kind::packet) {
        const auto at = e.kept.find(kept.cookie);
        if (at == e.kept.end()) {
          complain("a packet goes out again that was released");
          return false;
        }
        put_on(other(e), {sort::packet, e.talk.incarnation(), head, at->second});
      } else {
        put_on(other(e), {sort::operation, e.talk.incarnation(), {}, kept.cookie});
      }
      return true;
    });
    if (e.talk.wants_to_answer(now_)) {
      ++bare;
      const session::bare_answer told = e.talk.answer();
      put_on(other(e), {sort::bare, e.talk.incarnation(), {told.newest, told.acknowledged}, 0});
    }
  }

  /// The rest of what is under way is lost (of an unordered link it comes later). Maybe one end only notices.
  void break_off() {
    const std::uint32_t who = random_.below(3);
    for (std::uint32_t i = 0; i < 2; ++i)
      if (who == i || who == 2) ends_[i].talk.break_off();
    proposal_.reset();
    if (!ordered_) return;
    cut_ = true;
    for (end& e : ends_) {
      auto& way = to(e);
      way.resize(random_.below(static_cast<std::uint32_t>(way.size()) + 1));
      while (!way.empty()) deliver_what_had_arrived(e);
    }
  }
  /// As `deliver`, but of operations only what the target's side does: nobody waits for the answer.
  void deliver_what_had_arrived(end& at) {
    const moving m = to(at).front();
    if (m.what == sort::operation && m.incarnation == other(at).talk.incarnation()) {
      operation& o = other(at).operations[m.number - first_operation];
      ++o.carried_out;
      if (o.what == session::kind::put && at.got > o.behind)
        complain("a put is carried out behind a later packet");
    }
    if (m.what == sort::operation || m.what == sort::result)
      to(at).pop_front();
    else
      deliver(other(at), at);
  }

  /// One step of the handshake; either message may be lost, and both sides may ask at once.
  void connect() {
    if (ends_[0].talk.up() && ends_[1].talk.up()) {
      if (cut_) ends_[0].talk.break_off();  // a dead connection is noticed some time
      return;
    }
    end& asks = ends_[random_.below(2)];
    end& answers = other(asks);
    if (asks.talk.up()) return;
    if (!proposal_ || random_.below(4) == 0) proposal_ = {&asks, asks.talk.propose()};
    if (proposal_->first != &asks || random_.below(3) == 0) return;  // lost
    session::resume_point answer;
    const auto first =
        answers.talk.accept(proposal_->second, answer, now_, release(answers),
                            [&](std::uint64_t c, session::kind, errc e) { finish(answers, c, e); });
    if (first == session::agreement::repeated) ++repeated;
    if (first == session::agreement::outdated) return proposal_.reset();
    if (first != session::agreement::agreed && first != session::agreement::repeated)
      return complain("a proposal is refused");
    if (first == session::agreement::agreed) cut_ = false;
    if (random_.below(3) == 0) return;  // the answer is lost
    if (asks.talk.agree(answer, now_, release(asks), [&](std::uint64_t c, session::kind, errc e) {
          finish(asks, c, e);
        }) != session::agreement::agreed)
      return complain("an answer is refused");
    ++resumes;
    proposal_.reset();
  }

  transport::sim::random_source random_;
  trouble trouble_;
  bool ordered_;
  bool cut_ = false;  ///< an ordered link: nothing put on it arrives
  base::nanoseconds now_ = 0;
  std::uint64_t next_cookie_ = 1;
  std::array<end, 2> ends_;
  std::array<std::deque<moving>, 2> way_;
  std::optional<std::pair<end*, session::resume_point>> proposal_;
  std::string complaint_;
};

}  // namespace verbena::tests
