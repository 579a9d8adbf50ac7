// The fabric over RDMA devices: libibverbs, reliable connections. Kernel bypass and zero copy: packets are SENDs from and
// into registered slots, large messages and one-sided accesses are RDMA Writes and Reads between the users' own memory.
// This is its face, which needs nothing of libibverbs; behind it is endpoint.hpp, or, in a build without verbs, nothing.
//
// Waiting is by one helper thread on the completion channel, which rings the rank's doorbell (watcher.hpp). It must not know
// ranks of communicators or messages.
#pragma once

#include "base/job_page.hpp"
#include "transport/fabric.hpp"
#include "transport/region_cache.hpp"
#include "transport/verbs/options.hpp"
#include "transport/verbs/region.hpp"

#include <memory>
#include <string>
#include <vector>

namespace verbena::transport::verbs {

class endpoint;

class verbs_fabric {
 public:
  using region = verbs::region;

  /// `page`: where deaths are announced, or null; outlives this. Never fails: a rank without a device publishes that it
  /// has none, and `explain` says why.
  verbs_fabric(peer self, std::uint32_t job_size, const base::job_page* page, options how);
  ~verbs_fabric();
  verbs_fabric(const verbs_fabric&) = delete;
  verbs_fabric& operator=(const verbs_fabric&) = delete;

  std::span<const std::byte> address() const noexcept;
  bool attach(peer to, std::span<const std::byte> address);
  std::string explain(peer to) const;
  /// Why the connection to a peer broke, in a sentence; empty: it did not, or there is nothing to say.
  std::string last_words(peer to) const;
  peer_limits limits(peer to) const noexcept;

  template <class Writer>
  post_result send(peer to, envelope head, std::size_t size, Writer&& write) {
    post_result result = post_result::done;
    std::byte* const room = prepare(to, size, result);
    if (room == nullptr) return result;
    write(room);
    commit(head);
    return post_result::done;
  }

  post_result put(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return start(to, access_kind::put, local, key, offset, 0, 0, op);
  }
  /// A put that packets posted behind it may overtake, for who tells the other side himself once it is through.
  post_result put_apart(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return start(to, access_kind::put_apart, local, key, offset, 0, 0, op);
  }
  post_result get(peer to, buffer local, const remote_key& key, std::uint64_t offset, operation& op) {
    return start(to, access_kind::get, local, key, offset, 0, 0, op);
  }
  post_result put_with_flag(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                            std::uint64_t word, operation& op) {
    return start(to, access_kind::put_with_flag, local, key, offset, word, 0, op);
  }
  post_result fetch_add(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                        std::uint64_t word, operation& op) {
    return start(to, access_kind::fetch_add, local, key, offset, word, 0, op);
  }
  post_result compare_swap(peer to, buffer local, const remote_key& key, std::uint64_t offset,
                           std::uint64_t expected, std::uint64_t desired, operation& op) {
    return start(to, access_kind::compare_swap, local, key, offset, expected, desired, op);
  }
  region register_memory(buffer local);
  /// For one transfer: where somebody vouches for the memory, its registration, and with it the key, may outlive the region.
  region register_for_transfer(buffer local);
  /// This memory stays where it is until `forget`, so its registrations may be kept.
  void vouch(buffer block) noexcept;
  void forget(const std::byte* block) noexcept;
  region_counts registration_counts() const noexcept;

  template <class Sink>
  std::size_t poll(base::nanoseconds now, Sink& sink) {
    return report(now, nullptr, sink);
  }
  template <class Sink>
  std::size_t poll_from(peer from, base::nanoseconds now, Sink& sink) {
    return report(now, &from, sink);
  }

  bool arm();
  void disarm() noexcept {}

  /// For tests: as if the process had ended.
  void die() noexcept;

 private:
  std::byte* prepare(peer to, std::size_t size, post_result& result) noexcept;
  void commit(envelope head) noexcept;
  post_result start(peer to, access_kind what, buffer local, const remote_key& key, std::uint64_t offset,
                    std::uint64_t first, std::uint64_t second, operation& op);
  std::span<const arrival> gather(base::nanoseconds now, const peer* only, std::size_t& steps);
  void release() noexcept;

  template <class Sink>
  std::size_t report(base::nanoseconds now, const peer* only, Sink& sink) {
    std::size_t steps = 0;
    const std::span<const arrival> all = gather(now, only, steps);
    for (const arrival& a : all) {
      switch (a.what) {
        case arrival::kind::packet:
          sink.on_packet(a.from, a.head, a.payload);
          break;
        case arrival::kind::flag:
          sink.on_flag(a.from, a.word);
          break;
        case arrival::kind::down:
          sink.on_peer_down(a.from, a.why);
          break;
      }
    }
    steps += all.size();
    release();
    return steps;
  }

  std::unique_ptr<endpoint> end_;  ///< null: no device
  std::vector<std::byte> absence_;
  std::string why_;
};

static_assert(fabric<verbs_fabric>);

}  // namespace verbena::transport::verbs
