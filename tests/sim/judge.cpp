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
      : receives_(run.receives[self]), self_(self), victim_(victim), complaints_(complaints) {
    for (std::uint32_t from = 0; from < run.sends.size(); ++from) {
      std::uint64_t sequence = 0;
      for (const sent& s : run.sends[from])
        if (s.to == self) messages_.push_back({from, sequence++, s.label, s.size, nobody});
    }
    takes_.assign(receives_.size(), nobody);
  }

  void run() {
    for (std::size_t i = 0; i < receives_.size(); ++i) identify(i);
    if (complaints_.empty()) order();
  }

 private:
  template <class... Args>
  void complain(std::size_t i, fmt::format_string<Args...> text, Args&&... args) {
    const received& r = receives_[i];
    complaints_.push_back(fmt::format("rank {} receive {} (source {}, tag {}, room {}): {}", self_, i,
                                      r.want_source, r.want_label, r.room,
                                      fmt::format(text, std::forward<Args>(args)...)));
  }

  /// Which message a receive took, by source and size, and whether it took all of it.
  void identify(std::size_t i) {
    const received& r = receives_[i];
    for (std::size_t at = r.room; at < r.data.size(); ++at)
      if (r.data[at] != margin_byte) return complain(i, "bytes behind the buffer were written");
    if (!r.ended) return complain(i, "never ended");
    if (r.cancelled) return;
    if (r.error == errc::peer_failed) {
      const bool excused =
          victim_ && (r.want_source < 0 || static_cast<std::uint32_t>(r.want_source) == *victim_);
      if (!excused) complain(i, "ended with peer_failed and the peer lives");
      return;
    }
    const auto at = std::find_if(messages_.begin(), messages_.end(), [&](const arrival& m) {
      return static_cast<std::int32_t>(m.from) == r.source && m.size == r.sent_bytes;
    });
    if (at == messages_.end())
      return complain(i, "took a message of {} bytes from {} that nobody sent (error {})", r.sent_bytes,
                      r.source, static_cast<int>(r.error));
    if (at->taken_by != nobody) return complain(i, "took a message that receive {} has taken", at->taken_by);
    if (!could_take(r, *at) || at->label != r.label)
      return complain(i, "took a message from {} with tag {} and said {}", at->from, at->label, r.label);
    at->taken_by = i;
    takes_[i] = static_cast<std::size_t>(at - messages_.begin());
    const bool too_long = at->size > r.room;
    if (r.error != (too_long ? errc::truncated : errc::success))
      return complain(i, "ended with error {} for a message of {} bytes", static_cast<int>(r.error),
                      at->size);
    if (!too_long && r.bytes != at->size)
      return complain(i, "says {} of {} bytes arrived", r.bytes, at->size);
    if (r.bytes > r.room) return complain(i, "says {} bytes arrived", r.bytes);
    for (std::size_t b = 0; b < r.bytes; ++b)
      if (r.data[b] != content(at->from, self_, at->sequence, b))
        return complain(i, "byte {} of {} from rank {} is wrong", b, at->size, at->from);
  }

  bool from_victim(const arrival& m) const { return victim_ && m.from == *victim_; }

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
        if (from_victim(other) && other.taken_by == nobody) continue;  // it may never have arrived
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
      complaints_.push_back(
          fmt::format("rank {}: no order of arrivals explains its matches; message {} from rank {} (tag {}) "
                      "was overtaken",
                      self_, messages_[m].sequence, messages_[m].from, messages_[m].label));
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
  std::uint32_t self_;
  std::optional<std::uint32_t> victim_;
  std::vector<std::string>& complaints_;
  std::vector<arrival> messages_;
  std::vector<std::size_t> takes_;
};

}  // namespace

std::vector<std::string> judge(const observed& run, std::optional<std::uint32_t> victim) {
  std::vector<std::string> complaints;
  for (std::uint32_t rank = 0; rank < run.sends.size(); ++rank) {
    if (victim == rank) continue;
    std::vector<std::string> of_this;
    receiver_judge(run, rank, victim, of_this).run();
    complaints.insert(complaints.end(), of_this.begin(), of_this.end());
    for (std::size_t i = 0; i < run.sends[rank].size(); ++i) {
      const sent& s = run.sends[rank][i];
      const bool excused = victim == s.to;
      if (!s.ended)
        complaints.push_back(
            fmt::format("rank {} send {} ({} bytes to {}): never ended", rank, i, s.size, s.to));
      else if (s.error != errc::success && !(excused && s.error == errc::peer_failed))
        complaints.push_back(fmt::format("rank {} send {} ({} bytes to {}): ended with error {}", rank, i,
                                         s.size, s.to, static_cast<int>(s.error)));
    }
  }
  return complaints;
}

}  // namespace verbena::sim_tests
