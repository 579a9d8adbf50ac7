// One rank's end of all its TCP connections: the listening socket, the sockets that are not proven yet, and a link per peer.
// Its member functions are spread over files by what they do: endpoint.cpp (made, ended), sending.cpp, arriving.cpp,
// calling.cpp (connections come to be), closing.cpp (links break and end).
//
// What bounds what:
//   sent and not acknowledged      options::ring_bytes a peer, and `most_retained` packets; then `again`
//   received and not reported      in_bytes a peer: no more is read from its socket
//   reported in one poll           arrivals_per_link of a peer, arrivals_per_gather of all; who is cut short comes first next time
//   sockets that are not proven    most_callers of others' calls, each for caller_patience; most_ways calls a peer
#pragma once

#include "base/clock.hpp"
#include "base/job_page.hpp"
#include "transport/fabric.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/link.hpp"
#include "transport/tcp/options.hpp"
#include "transport/tcp/watcher.hpp"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace verbena::transport::tcp {

inline constexpr std::size_t in_bytes = 256U << 10;
inline constexpr std::size_t arrivals_per_gather = 256, arrivals_per_link = 64;
inline constexpr std::size_t most_callers = 128;
inline constexpr base::nanoseconds caller_patience = 5 * base::second;

/// What poll has to report.
struct arrival {
  peer from;
  bool down = false;
  errc why = errc::success;
  envelope head;
  std::span<const std::byte> payload;  ///< in the link's buffer, until it is released
};

class endpoint {
 public:
  /// Throws error{not_supported} with a sentence if this host has no address, or gives no socket.
  endpoint(peer self, std::uint32_t job_size, const base::job_page* page, options how);
  ~endpoint();
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  void trust(const secret& key, std::string job);
  std::span<const std::byte> address() const noexcept { return address_; }
  bool attach(peer to, std::span<const std::byte> address);
  std::string explain(peer to) const;
  std::string last_words(peer to) const;
  peer_limits limits() const noexcept;
  /// Begins to connect, if it is not; and whether there is nothing to wait for.
  void connect(peer to);
  bool settled(peer to) const;

  // sending.cpp. Room for a packet; null: refused, and `result` says how. `commit` follows at once.
  std::byte* prepare(peer to, std::size_t size, post_result& result) noexcept;
  void commit(envelope head) noexcept;

  // arriving.cpp
  /// Reads; `only`: that peer's packets only, others' wait. What it returns is valid until `release`, which must follow.
  /// `steps`: what else was done.
  std::span<const arrival> gather(base::nanoseconds now, const peer* only, std::size_t& steps);
  void release() noexcept;
  bool arm();
  void disarm() noexcept;

  // For tests.
  /// Nothing goes out or comes in any more, as if the process had ended.
  void die() noexcept;
  /// The socket to a peer breaks: `reset`, or an end of file at both ends.
  void cut(peer to, bool reset) noexcept;
  std::uint64_t breaks(peer to) const noexcept;
  std::size_t unproven() const noexcept { return connections_.size(); }

 private:
  enum class source : std::uint64_t { listener = 0, connection = 1, link = 2 };
  static std::uint64_t name(source what, std::uint64_t number) noexcept {
    return static_cast<std::uint64_t>(what) << 62 | number;
  }
  static constexpr std::size_t most_hot = 4;

  link* find(peer to) const noexcept { return to.index < links_.size() ? links_[to.index].get() : nullptr; }

  // endpoint.cpp
  void listen();
  bool listen_at(std::vector<tcp::address>& all);
  void watch(int fd, std::uint32_t events, std::uint64_t who, bool known) noexcept;

  // sending.cpp
  bool pump(link& to) noexcept;
  void shrink(link& l) noexcept;
  bool say(link& to, frame_kind what) noexcept;
  void owe(link& to) noexcept;
  void pay(bool all) noexcept;
  void pump_the_stuffed() noexcept;

  // arriving.cpp
  void read(link& from);
  bool take_frames(link& from);
  bool on_frame(link& from, const frame& f);
  void look_at_events(const peer* only);
  void heat(link& l) noexcept;

  // calling.cpp
  void seek(link& l, base::nanoseconds delay) noexcept;
  void call(link& l, bool later);
  void accept_callers();
  bool accept_callers(int listener);
  void watch_listeners(bool on) noexcept;
  void advance(connection& c);
  bool converse(connection& c);
  void on_news(connection& c, handshake::news what);
  void on_proposal(connection& c);
  void on_answer(connection& c);
  void establish(link& l, base::unique_fd socket);
  void hang_up(const link& l, const connection* but) noexcept;
  void sweep() noexcept;
  void look_at_seekers();
  bool drop_oldest_caller() noexcept;
  void add(base::unique_fd socket, link* to, handshake&& begun, std::size_t by = no_way);
  bool flush(connection& c) noexcept;
  bool make_buffers(link& l);
  bool seek_on(link& l);

  // closing.cpp
  void read_news();
  void break_off(link& l, int why);
  /// `read_on`: what the kernel still has of it is reported first.
  void close(link& l, errc why, std::string words, bool read_on = false);
  void bury(const peer* only);
  void leave();

  peer self_;
  options how_;
  std::optional<base::job_page> page_;
  identity mine_;
  bool trusted_ = false;
  own_addresses addresses_;
  host_mark host_{};
  std::vector<base::unique_fd> listeners_;  ///< of one port
  base::unique_fd epoll_;
  std::vector<std::byte> address_;
  std::vector<std::unique_ptr<link>> links_;  ///< by peer; null: this rank itself

  std::vector<std::unique_ptr<connection>> connections_;
  std::uint64_t next_connection_ = 1;
  base::nanoseconds listen_again_at_ = 0;  ///< not 0: no descriptor was free
  std::vector<link*> seeking_;
  base::nanoseconds next_look_ = 0;  ///< at those

  link* preparing_ = nullptr;
  std::size_t preparing_bytes_ = 0;

  std::array<link*, most_hot> hot_{};  ///< read in every poll
  std::size_t up_ = 0;                 ///< links that are
  std::vector<arrival> arrivals_;
  std::vector<link*> touched_;  ///< arrivals_ lie in their buffers
  std::vector<link*> behind_;   ///< have frames that did not fit into arrivals_
  std::vector<link*> owing_;    ///< heard, and have not answered
  std::vector<link*> stuffed_;  ///< their sockets took no more, or broke under a post
  std::vector<link*> ending_;
  std::size_t steps_ = 0;
  base::nanoseconds now_ = 0;
  std::uint32_t news_seen_ = ~std::uint32_t{0};
  std::uint64_t ticks_ = 0;
  bool dead_ = false;                 ///< as a process that has ended
  std::unique_ptr<watcher> watcher_;  ///< ends first
};

}  // namespace verbena::transport::tcp
