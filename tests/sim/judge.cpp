#include "tests/sim/observed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

// For each receive R that took message M, and each other message N that R could have taken and whose own
// receive (if any) was posted after R: R must have been taken when N arrived, so M arrived before N. These
// orders together with each sender's own have no cycle exactly if the run is allowed; and then the naive
// matcher, given an order that respects them, repeats it: matching depends on the order of posts and the
// order of arrivals only.
namespace verbena::sim_tests {
namespace {

constexpr std::size_t nobody = SIZE_MAX;

struct arrival {
  std::uint32_t from = 0;
  std::uint64_t sequence = 0;  ///< from `from` to this receiver
  std::int32_t label = 0;
  std::size_t size = 0;
  std::size_t taken_by = nobody;  ///< position of the receive
};

bool could_take(const received& r, const arrival& m) {
  return (r.want_source < 0 || static_cast<std::uint32_t>(r.want_source) == m.from) &&
         (r.want_label < 0 || r.want_label == m.label);
}

class receiver_judge {
 public:
  receiver_judge(const observed& run, std::uint32_t self, std::optional<std::uint32_t> victim,
                 std::vector<std::string>& complaints)
      : receives_(run.receives[self]),
        group_(run.group),
        self_(self),
        victim_(victim),
        complaints_(complaints) {
    for (std::uint32_t from = 0; from < run.sends.size(); ++from) {
      std::uint64_t sequence = 0;
      for (const sent& s : run.sends[from])
        if (s.to == self) messages_.push_back({from, sequence++, s.label, s.size, nobody});
    }
    takes_.assign(receives_.size(), nobody);
  }

  void run() {
    for (std::size_t i = 0; i < receives_.size(); ++i) examine(i);
    // Whole messages say which they are; what was cut may fit several, of which the oldest is meant.
    for (const bool cut : {false, true})
      for (std::size_t i = 0; i < receives_.size(); ++i)
        if (took_one(receives_[i]) && (receives_[i].error == errc::truncated) == cut) identify(i);
    const bool all_known =
        std::none_of(receives_.begin(), receives_.end(), [](const received& r) { return r.unknown; });
    if (complaints_.empty() && all_known) order();
  }

 private:
  template <class... Args>
  void complain(std::size_t i, fmt::format_string<Args...> text, Args&&... args) {
    const received& r = receives_[i];
    complaints_.push_back(fmt::format("communicator {} rank {} receive {} (source {}, tag {}, room {}): {}",
                                      group_, self_, i, r.want_source, r.want_label, r.room,
                                      fmt::format(text, std::forward<Args>(args)...)));
  }

  static bool took_one(const received& r) {
    return r.ended && !r.cancelled && !r.withdrawn && !r.unknown &&
           (r.error == errc::success || r.error == errc::truncated);
  }

  /// What can be said without knowing which message it was.
  void examine(std::size_t i) {
    const received& r = receives_[i];
    for (std::size_t at = r.room; at < r.data.size(); ++at)
      if (r.data[at] != margin_byte) return complain(i, "bytes behind the buffer were written");
    if (!r.ended) return complain(i, "never ended");
    if (r.cancelled || r.withdrawn) {
      for (const std::byte b : r.data)
        if (b != margin_byte) return complain(i, "was taken back, and its buffer written");
      return;
    }
    if (r.bytes > r.room) return complain(i, "says {} bytes arrived", r.bytes);
    if (took_one(r) || (r.unknown && victim_)) return;
    if (r.error != errc::peer_failed) return complain(i, "ended with error {}", static_cast<int>(r.error));
    const bool excused =
        victim_ && (r.want_source < 0 || static_cast<std::uint32_t>(r.want_source) == *victim_);
    if (!excused) complain(i, "ended with peer_failed and the peer lives");
  }

  /// Which message a receive took: the oldest that fits all it says.
  void identify(std::size_t i) {
    const received& r = receives_[i];
    const auto at = std::find_if(messages_.begin(), messages_.end(), [&](const arrival& m) {
      if (m.taken_by != nobody || static_cast<std::int32_t>(m.from) != r.source || m.label != r.label)
        return false;
      if (r.error == errc::success ? m.size != r.bytes : m.size <= r.room) return false;
      const std::uint64_t name = message_name(group_, m.from, self_, m.sequence);
      for (std::size_t b = 0; b < std::min(r.bytes, r.room); ++b)
        if (r.data[b] != byte_of(name, b)) return false;
      return true;
    });
    if (at == messages_.end())
      return complain(
          i,
          "got {} bytes from {} with tag {} (error {}), which is no message that was sent and not received",
          r.bytes, r.source, r.label, static_cast<int>(r.error));
    if (!could_take(r, *at)) return complain(i, "took a message from {} with tag {}", at->from, at->label);
    at->taken_by = i;
    takes_[i] = static_cast<std::size_t>(at - messages_.begin());
  }

  bool from_victim(const arrival& m) const { return victim_ && m.from == *victim_; }

  /// What the dead sent is missing from some point on; only what a receive before lost may be missing in between.
  bool overtook_the_missing(std::size_t i, const arrival& missing) const {
    const arrival& taken = messages_[takes_[i]];
    if (taken.from != missing.from || taken.sequence < missing.sequence) return false;
    for (std::size_t before = 0; before < i; ++before)
      if (takes_[before] == nobody && could_take(receives_[before], missing)) return false;
    return true;
  }

  void order() {
    std::vector<std::vector<std::size_t>> before(messages_.size());  // what must arrive earlier
    std::map<std::uint32_t, std::size_t> last;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      if (const auto at = last.find(messages_[m].from); at != last.end()) before[m].push_back(at->second);
      last[messages_[m].from] = m;
    }
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      const received& r = receives_[i];
      if (takes_[i] == nobody && !r.cancelled) continue;  // failed: when it left is not known
      for (std::size_t n = 0; n < messages_.size(); ++n) {
        const arrival& other = messages_[n];
        if (n == takes_[i] || !could_take(r, other) || (other.taken_by != nobody && other.taken_by < i))
          continue;
        if (from_victim(other) && other.taken_by == nobody) {  // it may never have arrived
          if (takes_[i] != nobody && overtook_the_missing(i, other))
            complain(i, "took message {} of the dead, and message {} before it is missing",
                     messages_[takes_[i]].sequence, other.sequence);
          continue;
        }
        if (r.cancelled)
          complain(i, "was never matched although message {} from {} was there", other.sequence, other.from);
        else
          before[n].push_back(takes_[i]);
      }
    }
    if (!complaints_.empty()) return;
    std::vector<std::size_t> sequence;
    std::vector<int> state(messages_.size(), 0);
    for (std::size_t m = 0; m < messages_.size(); ++m)
      if (!visit(m, before, state, sequence)) return;
    replay(sequence);
  }

  bool visit(std::size_t m, const std::vector<std::vector<std::size_t>>& before, std::vector<int>& state,
             std::vector<std::size_t>& sequence) {
    if (state[m] == 2) return true;
    if (state[m] == 1) {
      complaints_.push_back(fmt::format(
          "communicator {} rank {}: no order of arrivals explains its matches; message {} from rank {} (tag "
          "{}) was overtaken",
          group_, self_, messages_[m].sequence, messages_[m].from, messages_[m].label));
      return false;
    }
    state[m] = 1;
    for (const std::size_t earlier : before[m])
      if (!visit(earlier, before, state, sequence)) return false;
    state[m] = 2;
    sequence.push_back(m);
    return true;
  }

  /// The model: everything arrives, in this order; then each receive takes the oldest it may.
  void replay(const std::vector<std::size_t>& sequence) {
    std::vector<bool> taken(messages_.size(), false);
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      if (takes_[i] == nobody) continue;
      std::size_t oldest = nobody;
      for (const std::size_t m : sequence) {
        if (taken[m] || !could_take(receives_[i], messages_[m])) continue;
        if (from_victim(messages_[m]) && messages_[m].taken_by == nobody) continue;
        oldest = m;
        break;
      }
      if (oldest != takes_[i]) complain(i, "the sequential model takes another message");
      if (oldest != nobody) taken[oldest] = true;
    }
  }

  const std::vector<received>& receives_;
  std::uint32_t group_;
  std::uint32_t self_;
  std::optional<std::uint32_t> victim_;
  std::vector<std::string>& complaints_;
  std::vector<arrival> messages_;
  std::vector<std::size_t> takes_;
};

}  // namespace

std::vector<std::string> judge(const observed& run, const excuses& excused) {
  std::vector<std::string> complaints;
  for (std::uint32_t rank = 0; rank < run.sends.size(); ++rank) {
    if (excused.victim == rank || (!excused.absent.empty() && excused.absent[rank])) continue;
    std::vector<std::string> of_this;
    receiver_judge(run, rank, excused.victim, of_this).run();
    complaints.insert(complaints.end(), of_this.begin(), of_this.end());
    for (std::size_t i = 0; i < run.sends[rank].size(); ++i) {
      const sent& s = run.sends[rank][i];
      const bool may_fail = excused.victim == s.to;
      const auto complain = [&](const std::string& how) {
        complaints.push_back(fmt::format("communicator {} rank {} send {} ({} bytes to {}, tag {}): {}",
                                         run.group, rank, i, s.size, s.to, s.label, how));
      };
      const bool nobody_receives = !excused.absent.empty() && excused.absent[s.to];
      if (!s.ended) {
        if (!nobody_receives) complain("never ended");
      } else if (s.error != errc::success && !(may_fail && s.error == errc::peer_failed))
        complain(fmt::format("ended with error {}", static_cast<int>(s.error)));
    }
  }
  return complaints;
}

}  // namespace verbena::sim_tests
