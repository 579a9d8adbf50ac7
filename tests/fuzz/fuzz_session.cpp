// A session that is told anything at all: headers, bare answers, resume points, breaks and the clock, from any bytes.
// Whatever it hears, it releases each packet once, keeps no more than it may, and accepts each number once.
#include "base/check.hpp"
#include "transport/session/session.hpp"

#include <vector>

namespace {

using namespace verbena;
namespace session = transport::session;

class hostile_peer {
  static constexpr std::uint32_t most = 8;

  auto release() {
    return [this](std::uint64_t cookie) {
      base::check(kept_[cookie], "nothing is released twice");
      kept_[cookie] = false;
    };
  }
  auto end() {
    return [this](std::uint64_t cookie, session::kind, errc) { release()(cookie); };
  }

 public:
  explicit hostile_peer(std::uint8_t kind)
      : talk_({.identity = 0x0101010101010101,
               .most_retained = most,
               .peer_retains = most,
               .ordered_link = (kind & 1) != 0,
               .connected = (kind & 2) == 0,
               .answers = {3, 100},
               .repeats = {.after = (kind & 1) != 0 ? 0 : 50, .most_doublings = 3, .give_up = 4}}) {
    if ((kind & 4) != 0) talk_.start_at(UINT32_MAX - 2, UINT32_MAX - 2);
  }

  void take(std::span<const std::byte>& bytes) {
    const auto what = static_cast<std::uint8_t>(bytes.front());
    bytes = bytes.subspan(1);
    now_ += what;
    switch (what % 8) {
      case 0:
        if (talk_.may_post()) {
          talk_.packet(kept_.size(), now_);
          kept_.push_back(true);
        }
        break;
      case 1:
        if (talk_.may_post()) {
          talk_.one_sided(static_cast<session::kind>(2 + what / 8 % 4), kept_.size());
          kept_.push_back(true);
        }
        break;
      case 2:
        if (const auto head = session::take(bytes)) {
          const std::uint32_t due = talk_.heard().expected();
          const auto verdict = talk_.hear(talk_.incarnation() - what / 128U, *head, now_, release());
          const bool taken = verdict == session::verdict::accepted;
          base::check(!taken || head->sequence == due, "only the next number is accepted");
          base::check(talk_.heard().expected() == (taken ? session::next(due) : due), "a number is accepted once");
        }
        break;
      case 3:
        if (const auto told = session::take_answer(bytes))
          talk_.hear_answer(talk_.incarnation(), *told, now_, release());
        break;
      case 4:
        talk_.break_off();
        break;
      case 5:
        if (!talk_.up()) talk_.propose();
        break;
      case 6:
        if (const auto point = session::take_resume_point(bytes)) {
          session::resume_point answer;
          if (what / 8 % 2 == 0)
            talk_.accept(*point, answer, now_, release(), end());
          else
            talk_.agree(*point, now_, release(), end());
        }
        break;
      default:
        talk_.look(now_);
        if (talk_.wants_to_answer(now_)) talk_.answer();
        talk_.send_again([&](const session::entry& e, transport::session_header) {
          base::check(kept_[e.cookie], "what goes out again is retained");
          return what < 200;
        });
    }
    std::size_t retained = 0;
    for (const bool kept : kept_) retained += kept ? 1 : 0;
    base::check(retained <= most, "no more is retained than may be");
  }

  void finish() {
    talk_.abandon([&](const session::entry& e) { release()(e.cookie); });
    for (const bool kept : kept_) base::check(!kept, "all is given back");
  }

 private:
  session::session talk_;
  base::nanoseconds now_ = 0;
  std::vector<bool> kept_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // A copy of exactly this size: one byte too far is the sanitizer's.
  const std::vector<std::byte> exact(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  std::span<const std::byte> bytes(exact);
  hostile_peer peer(data[0]);
  bytes = bytes.subspan(1);
  while (!bytes.empty()) peer.take(bytes);
  peer.finish();
  return 0;
}
