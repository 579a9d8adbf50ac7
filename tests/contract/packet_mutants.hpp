// Simulated fabrics that break the contract in one way each, as far as packets and polls go. The suite must
// see every one of them; the names say what is wrong.
#pragma once

#include "mutant.hpp"

#include <algorithm>
#include <vector>

namespace verbena::contract::mutants {

/// A packet kept back by a mutant.
struct kept_packet {
  peer to;
  envelope head;
  std::vector<std::byte> bytes;
};

inline kept_packet keep(peer to, envelope head, std::size_t size, const writer& write) {
  kept_packet p{to, head, std::vector<std::byte>(size + 1)};
  write(p.bytes.data());
  p.bytes.resize(size);
  return p;
}

/// A writer that copies the kept bytes. `p` outlives the call it is handed to.
inline writer bytes_of(const kept_packet& p) {
  return [&p](std::byte* room) { std::copy(p.bytes.begin(), p.bytes.end(), room); };
}

struct reorders_two : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "order is kept per peer";
  std::vector<kept_packet> late;
  int sent = 0;
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    if (++sent % 50 == 7) {
      late.push_back(keep(to, head, size, write));
      return post_result::done;
    }
    const post_result result = mutant::send(to, head, size, write);
    if (result != post_result::done || late.empty()) return result;
    const kept_packet& p = late.back();
    if (mutant::send(p.to, p.head, p.bytes.size(), bytes_of(p)) != post_result::again) late.pop_back();
    return result;
  }
};

struct drops_one : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "order is kept per peer";
  int sent = 0;
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    if (++sent == 1234) {
      keep(to, head, size, write);
      return post_result::done;
    }
    return mutant::send(to, head, size, write);
  }
};

struct doubles_one : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "ping-pong";
  int sent = 0;
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    if (++sent % 100 == 0) {
      const kept_packet p = keep(to, head, size, write);
      const post_result result = mutant::send(p.to, p.head, p.bytes.size(), bytes_of(p));
      if (result == post_result::done) mutant::send(p.to, p.head, p.bytes.size(), bytes_of(p));
      return result;
    }
    return mutant::send(to, head, size, write);
  }
};

struct flips_a_bit : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "packets of all sizes arrive whole";
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    return mutant::send(to, head, size, [&](std::byte* room) {
      write(room);
      if (size == 257) room[256] ^= std::byte{1};
    });
  }
};

struct cuts_the_largest : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "packets of all sizes arrive whole";
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    const kept_packet p = keep(to, head, size, write);
    const std::size_t kept = size == limits(to).packet_bytes ? size - 1 : size;
    return mutant::send(to, head, kept, [&](std::byte* room) { std::copy_n(p.bytes.data(), kept, room); });
  }
};

struct changes_the_envelope : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "packets of all sizes arrive whole";
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    head.second &= ~std::uint64_t{1 << 7};
    return mutant::send(to, head, size, write);
  }
};

/// `again` although the packet went.
struct again_but_sent : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "again takes nothing and ends";
  int sent = 0;
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    if (++sent % 40 != 0) return mutant::send(to, head, size, write);
    mutant::send(to, head, size, noop_writer{});
    return post_result::again;
  }
};

/// `done` although the packet was refused: a full queue loses packets.
struct done_but_refused : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "again takes nothing and ends";
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    const kept_packet p = keep(to, head, size, write);
    const post_result result = mutant::send(p.to, p.head, p.bytes.size(), bytes_of(p));
    return result == post_result::again ? post_result::done : result;
  }
};

struct never_takes_again : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "again takes nothing and ends";
  bool full = false;
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    if (full) return post_result::again;
    const post_result result = mutant::send(to, head, size, write);
    full = result == post_result::again;
    return result;
  }
};

struct calls_the_writer_twice : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "packets of all sizes arrive whole";
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    return mutant::send(to, head, size, [&](std::byte* room) {
      write(room);
      write(room);
    });
  }
};

/// Remembers the sink of the last poll and hands it what lies there while sending.
struct delivers_inside_send : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "nothing is delivered inside send";
  sink_face* last_sink = nullptr;  // the suite's recorder, which lives longer
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    last_sink = sink.lasting();
    return mutant::poll(now, sink);
  }
  post_result send(peer to, envelope head, std::size_t size, const writer& write) override {
    if (last_sink != nullptr) mutant::poll(0, *last_sink);
    return mutant::send(to, head, size, write);
  }
};

struct names_the_wrong_peer : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "many peers";
  struct renaming : passing_sink {
    using passing_sink::passing_sink;
    void on_packet(peer from, envelope head, std::span<const std::byte> bytes) noexcept override {
      to.on_packet(from.index == 5 ? peer{6} : from, head, bytes);
    }
  };
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    renaming renamed{sink};
    return mutant::poll(now, renamed);
  }
};

struct poll_from_brings_all : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "poll_from is about one peer";
  std::size_t poll_from(peer, base::nanoseconds now, sink_face& sink) override {
    return mutant::poll(now, sink);
  }
};

struct polls_without_end : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "poll is bounded";
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    std::size_t all = 0;
    while (const std::size_t some = mutant::poll(now, sink)) all += some;
    return all;
  }
};

struct poll_counts_nothing : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "poll counts events";
  std::size_t poll(base::nanoseconds now, sink_face& sink) override {
    mutant::poll(now, sink);
    return 0;
  }
};

struct arm_is_blind : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "arm sees what is there";
  bool arm() override { return true; }
};

struct arm_is_nervous : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "arm sees what is there";
  bool arm() override { return false; }
};

struct packets_too_small : mutant {
  using mutant::mutant;
  static constexpr const char* caught_by = "limits are sane";
  peer_limits limits(peer to) const override {
    peer_limits l = mutant::limits(to);
    l.packet_bytes = 200;
    return l;
  }
};

}  // namespace verbena::contract::mutants
