#include "runtime/engine/matcher.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <list>
#include <random>

using namespace verbena;
using namespace verbena::runtime;

namespace {

/// MPI's rules by plain scanning: what the matcher must agree with.
struct oracle {
  struct item {
    match_key key;
    int id;
  };
  std::list<item> posted, unexpected;

  static bool fits(const match_key& want, const match_key& is) {
    return want.context == is.context && (want.source == any_source || want.source == is.source) &&
           (want.label == any_tag || want.label == is.label);
  }
  int receive(const match_key& want, int id) {
    for (auto at = unexpected.begin(); at != unexpected.end(); ++at)
      if (fits(want, at->key)) {
        const int found = at->id;
        unexpected.erase(at);
        return found;
      }
    posted.push_back({want, id});
    return -1;
  }
  int arrive(const match_key& is, int id) {
    for (auto at = posted.begin(); at != posted.end(); ++at)
      if (fits(at->key, is)) {
        const int found = at->id;
        posted.erase(at);
        return found;
      }
    unexpected.push_back({is, id});
    return -1;
  }
};

}  // namespace

TEST_CASE("the matcher agrees with a scan of MPI's rules on random traffic", "[matcher]") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    oracle model;
    matcher real;
    std::deque<posted_receive> receives;
    std::deque<unexpected_message> messages;
    for (int id = 0; id < 3000; ++id) {
      const auto context = static_cast<std::uint32_t>(random() % 2);
      match_key key{context, rank{static_cast<int>(random() % 3)}, tag{static_cast<int>(random() % 4)}};
      INFO("seed " << seed << " step " << id);
      if (random() % 2 == 0) {
        if (random() % 3 == 0) key.source = any_source;
        if (random() % 3 == 0) key.label = any_tag;
        const int expected = model.receive(key, id);
        const unexpected_message* peeked = real.peek_unexpected(key);
        const unexpected_message* found = real.take_unexpected(key);
        REQUIRE(peeked == found);
        REQUIRE((found == nullptr ? -1 : *static_cast<const int*>(found->holder)) == expected);
        if (found == nullptr) {
          receives.emplace_back().holder = new int(id);
          real.post(receives.back(), key);
        }
      } else {
        const int expected = model.arrive(key, id);
        const posted_receive* found = real.take_posted(key);
        REQUIRE((found == nullptr ? -1 : *static_cast<const int*>(found->holder)) == expected);
        if (found == nullptr) {
          messages.emplace_back().holder = new int(id);
          real.add_unexpected(messages.back(), key);
        }
      }
    }
    CHECK(real.unexpected_count() == model.unexpected.size());
    for (auto& r : receives) delete static_cast<int*>(r.holder);
    for (auto& m : messages) delete static_cast<int*>(m.holder);
  }
}

TEST_CASE("ten thousand posted receives do not cost a scan", "[matcher]") {
  // Counted, not timed: each look-up walks one bucket, and buckets stay short.
  matcher real;
  std::deque<posted_receive> receives(10'000);
  for (int i = 0; i < 10'000; ++i) real.post(receives[static_cast<std::size_t>(i)], {1, rank{0}, tag{i}});
  for (int i = 9'999; i >= 0; --i) {
    REQUIRE(real.take_posted({1, rank{0}, tag{i}}) == &receives[static_cast<std::size_t>(i)]);
  }
  CHECK_FALSE(real.has_posted());
}

TEST_CASE("a removed receive and a removed message match no more", "[matcher]") {
  matcher real;
  posted_receive first, second;
  real.post(first, {1, any_source, any_tag});
  real.post(second, {1, rank{2}, any_tag});
  real.remove(first);
  CHECK(real.take_posted({1, rank{1}, tag{0}}) == nullptr);
  CHECK(real.take_posted({1, rank{2}, tag{0}}) == &second);
  unexpected_message message;
  real.add_unexpected(message, {1, rank{2}, tag{3}});
  real.remove(message);
  CHECK(real.peek_unexpected({1, any_source, any_tag}) == nullptr);
}
