// One rank's end of all its verbs connections: device, completion queue, shared receive queue, slots, and a link per peer.
// It posts work requests and turns completions into arrivals, which verbs_fabric hands to the sink. Its member functions
// are spread over files by what they do: endpoint.cpp (made, ended), sending.cpp, access.cpp, arriving.cpp, troubles.cpp,
// breaking.cpp, letters.cpp, closing.cpp.
//
// What bounds what:
//   receives posted  = peers x (lease + flags + words): a peer has at most `lease` packets, `flags` flags and a few control
//                      words on the way, and learns of room only after it is posted again. So there is always a receive.
//   tokens           = room of the completion queue, less the receives: each request posted takes one, signalled or not,
//                      until a completion tells that it is over. So the queue cannot overflow.
#pragma once

#include "base/clock.hpp"
#include "base/job_page.hpp"
#include "transport/fabric.hpp"
#include "transport/verbs/device.hpp"
#include "transport/verbs/device_events.hpp"
#include "transport/verbs/link.hpp"
#include "transport/verbs/mailbox.hpp"
#include "transport/verbs/memory.hpp"
#include "transport/verbs/options.hpp"
#include "transport/verbs/queue_pair.hpp"
#include "transport/verbs/watcher.hpp"
#include "transport/verbs/wire.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace verbena::transport::verbs {

/// Asking the kernel for the way to a peer can take a second. There are others: so long together in one gather.
inline constexpr base::nanoseconds most_connecting = 50 * base::millisecond;
inline constexpr std::size_t payload_bytes = 8192;
/// Of so many packets in a row one asks for a completion, which tells of all before it.
inline constexpr std::uint32_t signal_every = 16;
inline constexpr std::size_t slot_bytes = (sizeof(packet_head) + payload_bytes + 63) / 64 * 64;
/// Packets up to this size, their heads included, lie close together until they need not be sent again.
inline constexpr std::size_t small_slot_bytes = 256;

class endpoint {
 public:
  /// Throws error{not_supported} or error{out_of_memory} with a sentence if there is no device, or not enough of it.
  endpoint(peer self, std::uint32_t job_size, const base::job_page* page, options how);
  ~endpoint();
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  std::span<const std::byte> address() const noexcept { return address_; }
  bool attach(peer to, std::span<const std::byte> address);
  std::string explain(peer to) const;
  std::string last_words(peer to) const;
  peer_limits limits(peer to) const noexcept;

  // sending.cpp. Room for a packet; null: refused, and `result` says how. `commit` follows at once.
  std::byte* prepare(peer to, std::size_t size, post_result& result) noexcept;
  void commit(envelope head) noexcept;

  // access.cpp
  post_result start(peer to, access_kind what, buffer local, const remote_key& key, std::uint64_t offset,
                    std::uint64_t first, std::uint64_t second, operation& op);
  region register_memory(buffer local);
  region register_for_transfer(buffer local);
  void vouch(buffer block) noexcept;
  void forget(const std::byte* block) noexcept;
  region_counts registration_counts() const noexcept { return registered_->kept().counts(); }

  // arriving.cpp
  /// Looks at completions; `only`: packets and flags of that peer only, others' wait. What it returns is valid until
  /// `release`, which must follow. `steps`: what else was done.
  std::span<const arrival> gather(base::nanoseconds now, const peer* only, std::size_t& steps);
  void release() noexcept;
  bool arm();

  /// Nothing goes out or comes in any more, as if the process had ended; for tests.
  void die() noexcept;

 private:
  enum class owner : std::uint8_t { packets, accesses, serving };
  struct role {
    link* of = nullptr;
    owner as = owner::packets;
  };
  /// Kinds of a work request's number: in the two highest bits.
  enum class request : std::uint64_t { receive = 0, packet = 1, access = 2 };
  static std::uint64_t name(request what, const link& on, std::uint32_t number) noexcept {
    return static_cast<std::uint64_t>(what) << 62 | std::uint64_t{on.who.index} << 32 | number;
  }

  // endpoint.cpp
  void make_queues(std::uint32_t peers);
  void make_links(std::uint32_t job_size);
  void check_memory(bool made, const char* what, std::size_t bytes) const;
  link* find(peer to) const noexcept { return to.index < links_.size() ? links_[to.index].get() : nullptr; }

  // sending.cpp
  slot_pool& pool_for(std::size_t bytes) noexcept { return bytes <= small_slot_bytes ? small_ : outgoing_; }
  bool post_packet(link& to, std::byte* data, std::size_t bytes) noexcept;
  bool send_again(link& to) noexcept;
  void given_back(link& of, std::uint32_t number) noexcept;
  bool say(link& to, const control& word) noexcept;
  bool say_what_is_owed(link& to) noexcept;
  void retire_packets(link& of, std::uint32_t number) noexcept;

  // access.cpp
  post_result refuse(operation& op, errc why);
  void open_accesses(link& to);
  bool pump(link& to);
  void look_after(link& to);
  void retire_accesses(link& of, std::uint32_t number, ibv_wc_status status);
  void finish_first(link& of, errc why);
  void let_go(access& a) noexcept;
  void reopen_when_flushed(link& of);
  void ask_to_open(link& to) noexcept;
  std::size_t complete_failures();
  bool connect_accesses(link& of);
  void on_open(link& from, const control& word);
  void on_opened(link& from, const control& word);
  void refuse_accesses(link& to);
  void break_for_accesses(link& of);

  // arriving.cpp
  bool handle(const ibv_wc& wc, const peer* only);
  void on_receive(const ibv_wc& wc, const role& at);
  void look_after_busy();
  void note_what_is_told(bool all, std::size_t handled) noexcept;
  void on_packet(link& from, std::uint32_t slot, std::span<const std::byte> bytes);
  void on_control(link& from, std::span<const std::byte> bytes);
  void post_receives() noexcept;

  // breaking.cpp
  void break_off(link& of, errc why, std::string words, base::nanoseconds since);
  void stop(link& of) noexcept;
  bool drain(link& of);
  void settle_accesses(link& of, std::uint32_t flags_arrived);

  // letters.cpp
  void mend_links();
  void act(link& on, deed what);
  void read_mail();
  void write(link& to, letter_kind what);
  void on_letter(const letter& news);
  connecting connect(link& to);
  void go_on(link& with);

  // troubles.cpp
  void on_failure(link& of, owner as, const ibv_wc& wc);
  bool look_at_device(base::nanoseconds now);
  void on_event(const device_event& event, base::nanoseconds now);
  void on_port_up(base::nanoseconds now);
  void on_address_change(const device_event& event);
  void watch_receives() noexcept;
  void look_for_silence(base::nanoseconds now);
  bool probe(link& to) noexcept;
  base::nanoseconds probe_interval() const noexcept;
  void close_all(errc why, const std::string& words);
  std::string port_words() const;

  // closing.cpp
  void read_news();
  void close(link& of, errc why, std::string words);
  void post_marker(link& of, queue_pair& q, request what) noexcept;
  void bury_the_closed();
  void leave();

  peer self_;
  options how_;
  std::optional<base::job_page> page_;
  device_choice device_;
  domain_handle domain_;
  channel_handle channel_;
  completion_queue_handle completions_;
  receive_queue_handle receives_;
  slot_pool incoming_;
  slot_pool outgoing_;
  slot_pool small_;  ///< for packets of at most small_slot_bytes, and control words
  slot_pool words_;  ///< 8 bytes each: where atomics leave old values
  std::unique_ptr<registrations> registered_;
  std::unique_ptr<device_events> events_;
  std::unique_ptr<mailbox> mail_;  ///< null: the device takes no datagrams
  std::uint64_t identity_ = 0;
  std::vector<std::unique_ptr<link>> links_;       ///< by peer; null: this rank itself
  std::unordered_map<std::uint32_t, role> roles_;  ///< by queue pair number
  std::vector<std::byte> address_;

  std::uint32_t lease_ = 0;
  std::int32_t tokens_ =
      0;  ///< below 0: only by the markers of links that close, for which there is room aside
  std::uint32_t first_number_ = 0;  ///< packet sequence number that queue pairs start with
  std::uint32_t inline_bytes_ = 0;

  link* preparing_ = nullptr;
  std::uint32_t preparing_slot_ = link::no_slot;
  std::size_t preparing_bytes_ = 0;

  std::vector<arrival> arrivals_;
  std::vector<std::uint32_t> to_post_;        ///< receive slots whose bytes nobody reads any more
  std::vector<std::uint32_t> held_;           ///< those of arrivals_
  std::vector<link*> busy_;                   ///< with words that are owed or accesses that are not posted
  std::vector<ibv_wc> kept_;                  ///< completions that were seen and not handled yet, in order
  base::intrusive_list<operation> failures_;  ///< end in the next gather, with the error they have
  std::vector<operation*> refused_;           ///< and these because there is no queue pair for them
  std::vector<link*> closing_;
  std::vector<link*> mending_;
  std::size_t steps_ = 0;
  base::nanoseconds now_ = 0;
  base::nanoseconds news_read_ = 0;        ///< and mail, and what the device says
  base::nanoseconds events_read_ = 0;      ///< by this thread, there being no helper
  base::nanoseconds port_down_since_ = 0;  ///< 0: it is up
  base::nanoseconds probed_ = base::steady_now();
  base::nanoseconds silence_due_ = 0;  ///< the next look for it
  // Completions come in order, so a queue that is never found empty still tells, after so many, what was in it once.
  std::uint32_t entries_ = 0;         ///< room of the completion queue
  base::nanoseconds told_until_ = 0;  ///< everything that was completed before is handled
  base::nanoseconds telling_ = 0;     ///< it will be this, after `still_to_tell_` more
  std::size_t still_to_tell_ = 0;
  base::nanoseconds connecting_took_ = 0;  ///< in this gather
  bool receives_low_ = false;
  std::string remark_;  ///< what the device said last that may be why something fails
  std::uint32_t news_seen_ = ~std::uint32_t{0};
  std::uint32_t ticks_ = 0;
  bool dead_ = false;                 ///< as a process that has ended
  bool leaving_ = false;              ///< whoever posted is gone: no operation is completed any more
  std::unique_ptr<watcher> watcher_;  ///< ends first
};

}  // namespace verbena::transport::verbs
