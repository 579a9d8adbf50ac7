// Every collective with every algorithm, on whole contexts, against a serial model: sizes 1 to 17, counts
// around the number of ranks and primes, in place and not, buffers at any address, blocking, non-blocking and
// persistent. A covering selection runs always; VERBENA_TEST_ALL=1 runs the whole product.
#include "tests/sanitized.hpp"
#include "tests/unit/thread_job.hpp"

#include <catch2/catch.hpp>
#include <verbena/verbena.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using namespace verbena;

namespace {

std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15;
  return x ^ (x >> 29);
}

/// What rank `r` brings at byte or element `i` of the block for rank `to`.
std::uint64_t operand(std::uint64_t seed, int r, int to, std::size_t i) noexcept {
  return mix(mix(seed * 131 + static_cast<std::uint64_t>(r)) * 1021 + static_cast<std::uint64_t>(to) * 65537 +
             i);
}

/// A buffer at an address of our choice, between guards.
class memory {
 public:
  memory(std::size_t bytes, std::size_t offset) : bytes_(bytes), offset_(offset), raw_(bytes + 256) {
    const std::size_t misfit = reinterpret_cast<std::uintptr_t>(raw_.data()) % 64;
    offset_ += 64 + (64 - misfit) % 64;
  }
  std::byte* at(std::size_t byte = 0) { return raw_.data() + offset_ + byte; }
  std::size_t size() const { return bytes_; }
  void clear() { std::fill(raw_.begin(), raw_.end(), std::byte{0xa5}); }
  bool guarded() const {
    for (std::size_t i = 0; i < raw_.size(); ++i)
      if ((i < offset_ || i >= offset_ + bytes_) && raw_[i] != std::byte{0xa5}) return false;
    return true;
  }

 private:
  std::size_t bytes_, offset_;
  std::vector<std::byte> raw_;
};

enum class form { blocking, started, persistent };

struct variation {
  std::size_t count;
  bool in_place;
  std::size_t offset;
  form how;
  int root;
  std::uint64_t seed;
};

struct call {
  std::function<void()> prepare;
  std::function<std::string()> verify;
  std::function<void()> blocking;
  std::function<request()> started;
  std::function<persistent_request()> kept;
};

std::string perform(const call& one, form how) {
  one.prepare();
  if (how == form::blocking) {
    one.blocking();
  } else if (how == form::started) {
    request pending = one.started();
    pending.wait();
  } else {
    persistent_request again = one.kept();
    again.start().wait();
    if (std::string wrong = one.verify(); !wrong.empty()) return wrong;
    one.prepare();
    again.start().wait();
  }
  return one.verify();
}

class player {
 public:
  explicit player(communicator on) : world_(on), n_(on.size()), self_(on.rank().value) {}

  /// All collectives with one variation each; the first complaint.
  std::string play(const variation& v) {
    using test = std::string (player::*)(const variation&);
    constexpr std::pair<const char*, test> tests[] = {
        {"broadcast", &player::broadcasts}, {"gather", &player::gathers},
        {"scatter", &player::scatters},     {"allgather", &player::allgathers},
        {"alltoall", &player::alltoalls},   {"allreduce", &player::allreduces},
        {"reduce", &player::reduces},       {"in rank order", &player::ordered},
        {"doubles", &player::doubles}};
    for (const auto& [name, one] : tests) {
      std::string wrong = (this->*one)(v);
      if (wrong.empty()) continue;
      return fmt::format("{}: {} (rank {} of {}, count {}, {}, offset {}, form {}, root {})", name, wrong,
                         self_, n_, v.count, v.in_place ? "in place" : "apart", v.offset,
                         static_cast<int>(v.how), v.root);
    }
    return {};
  }

 private:
  bool is(int root) const { return self_ == root; }
  std::size_t ranks() const { return static_cast<std::size_t>(n_); }
  // In words: most of the time of these tests goes into the pattern.
  static void fill(std::byte* at, std::size_t bytes, std::uint64_t seed, int r, int to) {
    for (std::size_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = operand(seed, r, to, i);
      std::memcpy(at + i, &word, std::min<std::size_t>(bytes - i, 8));
    }
  }
  static std::string compare(const std::byte* at, std::size_t bytes, std::uint64_t seed, int r, int to) {
    for (std::size_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = operand(seed, r, to, i);
      if (std::memcmp(at + i, &word, std::min<std::size_t>(bytes - i, 8)) != 0)
        return fmt::format("byte {} or one of the next 7 of the block from {} for {} is wrong", i, r, to);
    }
    return {};
  }
  static std::string first(std::initializer_list<std::string> all) {
    for (const std::string& one : all)
      if (!one.empty()) return one;
    return {};
  }
  static std::string guards(const memory& a, const memory& b) {
    return a.guarded() && b.guarded() ? "" : "something outside of the buffers was written";
  }

  std::string broadcasts(const variation& v) {
    memory data(v.count, v.offset);
    const rank root{v.root};
    return perform({[&] {
                      data.clear();
                      if (is(v.root)) fill(data.at(), v.count, v.seed, v.root, 0);
                    },
                    [&] {
                      return first({compare(data.at(), v.count, v.seed, v.root, 0), guards(data, data)});
                    },
                    [&] { broadcast(world_, data.at(), v.count, root); },
                    [&] { return ibroadcast(world_, data.at(), v.count, root); },
                    [&] { return broadcast_init(world_, data.at(), v.count, root); }},
                   v.how);
  }

  std::string gathers(const variation& v) {
    memory one(v.count, v.offset), all(is(v.root) ? v.count * ranks() : 0, v.offset * 7 % 64);
    const bool in_place = v.in_place && is(v.root);
    std::byte* const in = in_place ? all.at(static_cast<std::size_t>(self_) * v.count) : one.at();
    std::byte* const out = is(v.root) ? all.at() : nullptr;
    const rank root{v.root};
    return perform(
        {[&] {
           one.clear();
           all.clear();
           fill(in, v.count, v.seed, self_, 0);
         },
         [&]() -> std::string {
           if (is(v.root))
             for (int r = 0; r < n_; ++r)
               if (auto wrong = compare(all.at(static_cast<std::size_t>(r) * v.count), v.count, v.seed, r, 0);
                   !wrong.empty())
                 return wrong;
           return first({compare(in, v.count, v.seed, self_, 0), guards(one, all)});
         },
         [&] { gather(world_, in, out, v.count, root); },
         [&] { return igather(world_, in, out, v.count, root); },
         [&] { return gather_init(world_, in, out, v.count, root); }},
        v.how);
  }

  std::string scatters(const variation& v) {
    memory one(v.count, v.offset), all(is(v.root) ? v.count * ranks() : 0, v.offset * 7 % 64);
    const bool in_place = v.in_place && is(v.root);
    std::byte* const out = in_place ? all.at(static_cast<std::size_t>(self_) * v.count) : one.at();
    const std::byte* const in = is(v.root) ? all.at() : nullptr;
    const rank root{v.root};
    return perform({[&] {
                      one.clear();
                      all.clear();
                      if (is(v.root))
                        for (int r = 0; r < n_; ++r)
                          fill(all.at(static_cast<std::size_t>(r) * v.count), v.count, v.seed, self_, r);
                    },
                    [&] {
                      return first({compare(out, v.count, v.seed, v.root, self_), guards(one, all)});
                    },
                    [&] { scatter(world_, in, out, v.count, root); },
                    [&] { return iscatter(world_, in, out, v.count, root); },
                    [&] { return scatter_init(world_, in, out, v.count, root); }},
                   v.how);
  }

  std::string allgathers(const variation& v) {
    memory one(v.count, v.offset), all(v.count * ranks(), v.offset * 7 % 64);
    std::byte* const in = v.in_place ? all.at(static_cast<std::size_t>(self_) * v.count) : one.at();
    return perform(
        {[&] {
           one.clear();
           all.clear();
           fill(in, v.count, v.seed, self_, 0);
         },
         [&]() -> std::string {
           for (int r = 0; r < n_; ++r)
             if (auto wrong = compare(all.at(static_cast<std::size_t>(r) * v.count), v.count, v.seed, r, 0);
                 !wrong.empty())
               return wrong;
           return guards(one, all);
         },
         [&] { allgather(world_, in, all.at(), v.count); },
         [&] { return iallgather(world_, in, all.at(), v.count); },
         [&] { return allgather_init(world_, in, all.at(), v.count); }},
        v.how);
  }

  std::string alltoalls(const variation& v) {
    memory from(v.count * ranks(), v.offset), to(v.count * ranks(), v.offset * 7 % 64);
    std::byte* const in = v.in_place ? to.at() : from.at();
    const auto block = [&](int r) { return static_cast<std::size_t>(r) * v.count; };
    return perform({[&] {
                      from.clear();
                      to.clear();
                      for (int r = 0; r < n_; ++r) fill(in + block(r), v.count, v.seed, self_, r);
                    },
                    [&]() -> std::string {
                      for (int r = 0; r < n_; ++r)
                        if (auto wrong = compare(to.at(block(r)), v.count, v.seed, r, self_); !wrong.empty())
                          return wrong;
                      for (int r = 0; r < n_ && !v.in_place; ++r)
                        if (!compare(in + block(r), v.count, v.seed, self_, r).empty())
                          return "the input was changed";
                      return guards(from, to);
                    },
                    [&] { alltoall(world_, in, to.at(), v.count); },
                    [&] { return ialltoall(world_, in, to.at(), v.count); },
                    [&] { return alltoall_init(world_, in, to.at(), v.count); }},
                   v.how);
  }

  /// Sums of Type, with wrap-around, at addresses aligned for it and no better.
  template <class Type>
  std::string sums(const variation& v, bool to_all) {
    const std::size_t bytes = v.count * sizeof(Type);
    const std::size_t offset = v.offset * sizeof(Type) % 64;
    memory from(bytes, offset), to(bytes, offset * 3 % 64);
    const bool has_result = to_all || is(v.root);
    std::byte* const in = v.in_place && has_result ? to.at() : from.at();
    std::byte* const out = has_result ? to.at() : nullptr;
    const auto brought = [&](int r, std::size_t i) { return static_cast<Type>(operand(v.seed, r, 0, i)); };
    constexpr element type = element_of<Type>();
    const rank root{v.root};
    return perform({[&] {
                      from.clear();
                      to.clear();
                      for (std::size_t i = 0; i < v.count; ++i) {
                        const Type x = brought(self_, i);
                        std::memcpy(in + i * sizeof x, &x, sizeof x);
                      }
                    },
                    [&]() -> std::string {
                      for (std::size_t i = 0; i < v.count && has_result; ++i) {
                        Type expected{}, got;
                        for (int r = 0; r < n_; ++r) expected = static_cast<Type>(expected + brought(r, i));
                        std::memcpy(&got, out + i * sizeof got, sizeof got);
                        if (got != expected) return fmt::format("element {} is {}, not {}", i, got, expected);
                      }
                      return guards(from, to);
                    },
                    [&] {
                      if (to_all)
                        allreduce(world_, in, out, v.count, type, reduction::sum);
                      else
                        reduce(world_, in, out, v.count, type, reduction::sum, root);
                    },
                    [&] {
                      return to_all ? iallreduce(world_, in, out, v.count, type, reduction::sum)
                                    : ireduce(world_, in, out, v.count, type, reduction::sum, root);
                    },
                    [&] {
                      return to_all ? allreduce_init(world_, in, out, v.count, type, reduction::sum)
                                    : reduce_init(world_, in, out, v.count, type, reduction::sum, root);
                    }},
                   v.how);
  }
  std::string allreduces(const variation& v) {
    return v.seed % 2 == 0 ? sums<std::uint32_t>(v, true) : sums<std::uint8_t>(v, true);
  }
  std::string reduces(const variation& v) {
    return v.seed % 2 == 0 ? sums<std::uint64_t>(v, false) : sums<std::uint16_t>(v, false);
  }

  /// x -> scale * x + shift: composing such maps is associative and does not commute. Twelve bytes: no power
  /// of two.
  struct map {
    std::uint32_t scale, shift, uses;
    friend bool operator==(const map&, const map&) = default;
  };
  static map compose(const map& f, const map& g) {
    return {f.scale * g.scale, f.scale * g.shift + f.shift, f.uses + g.uses};
  }
  std::string ordered(const variation& v) {
    const auto brought = [&](int r, std::size_t i) {
      return map{static_cast<std::uint32_t>(operand(v.seed, r, 0, i)) | 1,
                 static_cast<std::uint32_t>(operand(v.seed, r, 1, i)), 1};
    };
    const auto join = [](const map& f, const map& g) { return compose(f, g); };
    const custom_reduction how = reduction_by<map>(join, false);
    std::vector<map> in(v.count), out(v.count);
    const bool to_all = v.seed % 3 != 0;
    const rank root{v.root};
    std::vector<map>& from = v.in_place ? out : in;
    try {
      return perform(
          {[&] {
             for (std::size_t i = 0; i < v.count; ++i) from[i] = brought(self_, i);
           },
           [&]() -> std::string {
             for (std::size_t i = 0; i < v.count && (to_all || is(v.root)); ++i) {
               map expected = brought(0, i);
               for (int r = 1; r < n_; ++r) expected = compose(expected, brought(r, i));
               if (!(out[i] == expected)) return fmt::format("element {} is wrong", i);
             }
             return {};
           },
           [&] { to_all ? allreduce(world_, from, out, how) : reduce(world_, from, out, how, root); },
           [&] {
             return to_all ? iallreduce(world_, from, out, how) : ireduce(world_, from, out, how, root);
           },
           [&] {
             return to_all ? allreduce_init(world_, from, out, how)
                           : reduce_init(world_, from, out, how, root);
           }},
          v.how);
    } catch (const error& e) {
      // A forced ring cannot keep the order, and says so.
      const bool expected =
          e.reason() == errc::invalid_argument && n_ > 1 &&
          std::string(e.what()).find("in another order than that of the ranks") != std::string::npos;
      return expected && refuses_order ? "" : e.what();
    }
  }

  std::string doubles(const variation& v) {
    std::vector<double> in(v.count), out(v.count);
    for (std::size_t i = 0; i < v.count; ++i) {
      const std::uint64_t bits = operand(v.seed, self_, 0, i);
      in[i] = std::ldexp(1 + static_cast<double>(bits % 4096) / 4096, static_cast<int>(bits >> 32) % 997) *
              (bits & 4096 ? -1 : 1);  // 1e-300 to 1e300
    }
    iallreduce(world_, in, out, reduction::sum).wait();
    std::uint64_t hash = v.count;
    for (double x : out) hash = mix(hash ^ std::bit_cast<std::uint64_t>(x));
    std::vector<std::uint64_t> hashes(ranks());
    const std::vector<std::uint64_t> mine{hash};
    allgather(world_, mine, hashes);
    for (std::uint64_t other : hashes)
      if (other != hash) return "ranks have results of different bits";
    return {};
  }

  communicator world_;
  const int n_, self_;

 public:
  bool refuses_order = false;
};

struct algorithms {
  const char* name;
  const char *allreduce, *barrier, *broadcast, *reduce, *gather, *allgather, *alltoall;
};

std::string play_all(context& self, const algorithms& forced, bool all) {
  player one(self.world());
  one.refuses_order = std::string(forced.allreduce) == "ring";
  const auto n = static_cast<std::size_t>(self.world().size());
  std::uint64_t step = n * 7;
  const auto play = [&](std::size_t count, bool in_place, std::size_t offset, form how) {
    ++step;
    const auto root = static_cast<int>(step * 5 % n);
    if (step % 3 == 0) barrier(self.world());
    if (step % 7 == 0) ibarrier(self.world()).wait();
    return one.play({count, in_place, offset, how, root, step});
  };
  for (std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n, n + 1, std::size_t{31}, std::size_t{97},
                            std::size_t{769}, std::size_t{4099}}) {
    if (all) {
      for (bool in_place : {false, true})
        for (std::size_t offset = 1; offset < 64; ++offset)
          for (form how : {form::blocking, form::started, form::persistent})
            if (auto wrong = play(count, in_place, offset, how); !wrong.empty()) return wrong;
    } else {
      // Every pair of place and form, with offsets that all come up over the sizes.
      const int variations = tests::sanitized ? 2 : 3;
      for (int k = 0; k < variations; ++k) {
        const std::uint64_t which = step + static_cast<std::uint64_t>(k);
        if (auto wrong = play(count, which % 2 == 0, 1 + which * 11 % 63, static_cast<form>(which % 3));
            !wrong.empty())
          return wrong;
      }
    }
  }
  return {};
}

const algorithms variants[] = {
    {"auto", "auto", "auto", "auto", "auto", "auto", "auto", "auto"},
    {"node", "node", "node", "node", "node", "node", "node", "node"},
    {"trees", "recursive_doubling", "dissemination", "binomial", "binomial", "binomial", "bruck", "bruck"},
    {"rings", "ring", "dissemination", "scatter_ring", "scatter_gather", "linear", "ring", "pairwise"},
};

base::settings settings_of(const algorithms& forced) {
  base::settings settings;
  settings.allreduce = forced.allreduce;
  settings.barrier = forced.barrier;
  settings.broadcast = forced.broadcast;
  settings.reduce = forced.reduce;
  settings.gather = settings.scatter = forced.gather;
  settings.allgather = forced.allgather;
  settings.alltoall = forced.alltoall;
  return settings;
}

}  // namespace

TEST_CASE("all collectives equal a serial model", "[collectives][oracle][threads]") {
  const char* all = std::getenv("VERBENA_TEST_ALL");
  for (const algorithms& forced : variants)
    for (std::uint32_t size = 1; size <= 17; ++size) {
      if (tests::sanitized && size > 5 && size != 8 && size != 13) continue;
      INFO(forced.name << ", " << size << " ranks");
      CHECK(tests::complaint(tests::run_ranks(size, settings_of(forced), [&](context& self) {
              return play_all(self, forced, all != nullptr && *all == '1');
            })) == "");
    }
}

TEST_CASE("so do long ones, in many segments", "[collectives][oracle][threads]") {
  for (const algorithms& forced : variants)
    for (std::uint32_t size : {2U, 5U}) {
      INFO(forced.name << ", " << size << " ranks");
      CHECK(tests::complaint(tests::run_ranks(size, settings_of(forced), [&](context& self) {
              player one(self.world());
              one.refuses_order = std::string(forced.allreduce) == "ring";
              const int root = static_cast<int>(size) - 1;
              // 4 MiB of scratch for all blocks: longer than one segment.
              auto wrong = one.play(
                  {tests::sanitized ? 200003U : 1600000U / size, false, 3, form::persistent, root, 1});
              return wrong.empty() ? one.play({160001, true, 0, form::started, 0, 2}) : wrong;
            })) == "");
    }
}
