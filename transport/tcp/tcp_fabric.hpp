// The fabric over TCP: what there is wherever there is a network. Packets only: large messages go as streams of them, and the
// engine does one-sided accesses by packets. Every connection is made on first use, is proven with the job's secret
// before a byte of it is believed, and goes on over a new one when it breaks (docs/tcp.md). This is its face; behind it
// is endpoint.hpp.
//
// Waiting is by one helper thread on the sockets, which rings the rank's doorbell (watcher.hpp). It must not know ranks of
// communicators or messages.
#pragma once

#include "base/job_page.hpp"
#include "transport/fabric.hpp"
#include "transport/key_table.hpp"
#include "transport/tcp/endpoint.hpp"

#include <memory>
#include <string>
#include <vector>

namespace verbena::transport::tcp {

class tcp_fabric {
 public:
  using region = table_region;

  /// `page`: where deaths are announced, or null; outlives this. Never fails: a rank that can listen nowhere publishes that,
  /// and `explain` says why.
  tcp_fabric(peer self, std::uint32_t job_size, const base::job_page* page, options how);
  ~tcp_fabric();
  tcp_fabric(const tcp_fabric&) = delete;
  tcp_fabric& operator=(const tcp_fabric&) = delete;

  std::span<const std::byte> address() const noexcept;
  /// What connections are proven with; before the first attach. `job`: its name, the same on all ranks.
  void trust(const secret& key, std::string job);
  bool attach(peer to, std::span<const std::byte> address);
  std::string explain(peer to) const;
  /// Why the connection to a peer broke, in a sentence; empty: it did not, or there is nothing to say.
  std::string last_words(peer to) const;
  peer_limits limits(peer) const noexcept { return end_ ? end_->limits() : peer_limits{}; }
  /// Begins to connect without a packet to send; `settled`: polls will not change what `explain` says of it.
  void connect(peer to);
  bool settled(peer to) const { return !end_ || end_->settled(to); }

  template <class Writer>
  post_result send(peer to, envelope head, std::size_t size, Writer&& write) {
    post_result result = post_result::down;
    std::byte* const room = end_ ? end_->prepare(to, size, result) : nullptr;
    if (room == nullptr) return result;
    write(room);
    end_->commit(head);
    return post_result::done;
  }

  // No peer's processor is spared by TCP: all of these are the engine's.
  post_result put(peer, buffer, const remote_key&, std::uint64_t, operation&) noexcept {
    return post_result::down;
  }
  post_result get(peer, buffer, const remote_key&, std::uint64_t, operation&) noexcept {
    return post_result::down;
  }
  post_result put_with_flag(peer, buffer, const remote_key&, std::uint64_t, std::uint64_t,
                            operation&) noexcept {
    return post_result::down;
  }
  post_result fetch_add(peer, buffer, const remote_key&, std::uint64_t, std::uint64_t, operation&) noexcept {
    return post_result::down;
  }
  post_result compare_swap(peer, buffer, const remote_key&, std::uint64_t, std::uint64_t, std::uint64_t,
                           operation&) noexcept {
    return post_result::down;
  }
  region register_memory(buffer) noexcept { return {}; }

  template <class Sink>
  std::size_t poll(base::nanoseconds now, Sink& sink) {
    return report(now, nullptr, sink);
  }
  template <class Sink>
  std::size_t poll_from(peer from, base::nanoseconds now, Sink& sink) {
    return report(now, &from, sink);
  }

  bool arm() { return !end_ || end_->arm(); }
  void disarm() noexcept {
    if (end_) end_->disarm();
  }

  /// For tests; null: this rank listens nowhere.
  endpoint* inside() noexcept { return end_.get(); }

 private:
  template <class Sink>
  std::size_t report(base::nanoseconds now, const peer* only, Sink& sink) {
    if (!end_) return 0;
    std::size_t steps = 0;
    const std::span<const arrival> all = end_->gather(now, only, steps);
    for (const arrival& a : all) {
      if (a.down) [[unlikely]]
        sink.on_peer_down(a.from, a.why);
      else
        sink.on_packet(a.from, a.head, a.payload);
    }
    steps += all.size();
    end_->release();
    return steps;
  }

  std::unique_ptr<endpoint> end_;
  std::vector<std::byte> absence_;
  std::string why_;
};

static_assert(fabric<tcp_fabric>);

}  // namespace verbena::transport::tcp
