// Where agents come back to: listens, lets nobody in who does not prove that he knows the job's secret (proof.hpp), and hands
// on those who do. A stranger costs one descriptor for five seconds at most, and there are never more than a few of them.
#pragma once

#include "base/fd.hpp"
#include "base/network.hpp"
#include "launcher/event_loop.hpp"
#include "launcher/hosts/proof.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

namespace verbena::launcher {

class door {
 public:
  static constexpr base::nanoseconds patience = 5 * base::second;
  static constexpr std::size_t most_strangers = 256;

  /// `on_proven` gets the socket of an agent and the index it claims (proven to come from who knows the secret), if `is_wanted`:
  /// an agent comes by all ways at once, and is answered on one.
  door(event_loop& loop, const job_secret& secret, std::function<bool(std::uint32_t index)> is_wanted,
       std::function<void(std::uint32_t index, base::unique_fd)> on_proven);
  ~door();
  door(const door&) = delete;
  door& operator=(const door&) = delete;

  /// Listens on an address, on a free port of the range. False, with errno: it cannot be had.
  bool listen(const std::string& address, base::port_range ports = {});
  /// "ADDRESS PORT" of each.
  const std::vector<std::string>& places() const { return places_; }

 private:
  struct stranger {
    base::unique_fd socket;
    nonce ours{};
    std::string place;  // at which it came
    std::string heard;
    event_loop::timer limit = 0;
  };
  void answer(std::size_t listener);
  void hear(std::list<stranger>::iterator who);
  void drop(std::list<stranger>::iterator who);

  event_loop& loop_;
  job_secret secret_;
  std::function<bool(std::uint32_t)> is_wanted_;
  std::function<void(std::uint32_t, base::unique_fd)> on_proven_;
  std::vector<base::unique_fd> listeners_;
  std::vector<std::string> places_;
  std::list<stranger> strangers_;  // the oldest first
};

}  // namespace verbena::launcher
