#include "transport/tcp/handshake.hpp"

#include "base/check.hpp"

#include <cstring>
#include <type_traits>

namespace verbena::transport::tcp {
namespace {

constexpr std::uint64_t greeting = 0x3170637462726556ULL;  // "Verbtcp1"

struct hello_message {
  std::uint64_t greeting = 0;
  std::uint32_t caller = 0, callee = 0;
  std::uint64_t reserved = 0;
  std::array<std::byte, 32> nonce{};
};
struct challenge_message {
  std::array<std::byte, 32> nonce{};
  proof given{};
};
struct proposal_message {
  session::resume_point point;
  proof given{};
};
struct answer_message {
  std::uint32_t verdict = 0, reserved = 0;
  session::resume_point point;
  proof given{};
};
static_assert(sizeof(hello_message) == 56 && sizeof(challenge_message) == 64 &&
              sizeof(proposal_message) == 56 && sizeof(answer_message) == 64);

void append(std::string& to, std::span<const std::byte> bytes) {
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
template <class T>
void append_value(std::string& to, const T& value) {
  append(to, std::as_bytes(std::span(&value, 1)));
}
void append_text(std::string& to, std::string_view text) {
  append_value(to, static_cast<std::uint64_t>(text.size()));  // so that no two statements have the same bytes
  to += text;
}
std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

template <class Message>
void handshake::put(const Message& m) noexcept {
  static_assert(std::is_trivially_copyable_v<Message> && sizeof(Message) <= longest_message);
  std::memcpy(out_.data(), &m, sizeof m);
  filled_ = sizeof m;
  sent_ = 0;
}

template <class Message>
Message handshake::taken() const noexcept {
  Message m;
  std::memcpy(&m, in_.data(), sizeof m);
  return m;
}

handshake::handshake(const identity& who, std::uint32_t callee, const instance& of_callee)
    : who_(&who), calls_(true), peer_(callee), theirs_(of_callee) {
  fill_randomly(of_caller_);
  put(hello_message{greeting, who.rank, callee, 0, of_caller_});
  expect(stage::challenge, sizeof(challenge_message));
}

std::string handshake::statement(std::string_view label, std::span<const std::byte> more) const {
  std::string text;
  append_text(text, label);
  append_text(text, who_->job);
  append_value(text, calls_ ? who_->rank : peer_);
  append_value(text, calls_ ? peer_ : who_->rank);
  append(text, calls_ ? who_->self : theirs_);
  append(text, calls_ ? theirs_ : who_->self);
  append(text, of_caller_);
  append(text, of_callee_);
  append(text, more);
  return text;
}

handshake::news handshake::got(std::size_t bytes) {
  base::check(bytes <= due_ - got_, "tcp: more bytes of a handshake than were asked for");
  got_ += bytes;
  if (got_ < due_ || due_ == 0) return news::none;
  switch (at_) {
    case stage::hello:
      return on_hello();
    case stage::challenge:
      return on_challenge();
    case stage::proposal:
      return on_proposal();
    case stage::answer:
      return on_answer();
    case stage::over:
      break;
  }
  return fail();
}

handshake::news handshake::on_hello() {
  const auto m = taken<hello_message>();
  if (m.greeting != greeting || m.callee != who_->rank || m.caller == who_->rank || m.reserved != 0)
    return fail();
  peer_ = m.caller;
  of_caller_ = m.nonce;
  expect(stage::over, 0);
  return news::named;
}

void handshake::greet(const instance& of_caller) {
  theirs_ = of_caller;
  fill_randomly(of_callee_);
  put(challenge_message{of_callee_, prove(who_->key, bytes_of(statement("verbena tcp 1 callee", {})))});
  expect(stage::proposal, sizeof(proposal_message));
}

handshake::news handshake::on_challenge() {
  const auto m = taken<challenge_message>();
  of_callee_ = m.nonce;
  if (!holds(who_->key, bytes_of(statement("verbena tcp 1 callee", {})), m.given)) return fail();
  expect(stage::over, 0);
  return news::proven;
}

void handshake::propose(const session::resume_point& mine) {
  const auto bytes = std::as_bytes(std::span(&mine, 1));
  put(proposal_message{mine, prove(who_->key, bytes_of(statement("verbena tcp 1 caller", bytes)))});
  expect(stage::answer, sizeof(answer_message));
}

handshake::news handshake::on_proposal() {
  const auto m = taken<proposal_message>();
  std::span<const std::byte> bytes = std::as_bytes(std::span(&m.point, 1));
  if (!holds(who_->key, bytes_of(statement("verbena tcp 1 caller", bytes)), m.given)) return fail();
  const auto point = session::take_resume_point(bytes);
  if (!point) return fail();
  point_ = *point;
  expect(stage::over, 0);
  return news::proposed;
}

void handshake::answer(verdict how, const session::resume_point& mine) {
  answer_message m{static_cast<std::uint32_t>(how), 0, mine, {}};
  const auto bytes = std::as_bytes(std::span(&m, 1)).first(offsetof(answer_message, given));
  m.given = prove(who_->key, bytes_of(statement("verbena tcp 1 answer", bytes)));
  put(m);
}

handshake::news handshake::on_answer() {
  const auto m = taken<answer_message>();
  const auto bytes = std::as_bytes(std::span(&m, 1));
  if (!holds(who_->key,
             bytes_of(statement("verbena tcp 1 answer", bytes.first(offsetof(answer_message, given)))),
             m.given))
    return fail();
  if (m.verdict < 1 || m.verdict > 4) return fail();
  said_ = static_cast<verdict>(m.verdict);
  std::span<const std::byte> rest = bytes.subspan(offsetof(answer_message, point), sizeof m.point);
  const auto point = session::take_resume_point(rest);
  if (said_ == verdict::agreed && !point) return fail();
  if (point) point_ = *point;
  expect(stage::over, 0);
  return news::answered;
}

std::uint64_t session_identity(const identity& mine, std::uint32_t peer, const instance& theirs) {
  const bool lower = mine.rank < peer;
  std::string text;
  append_text(text, "verbena tcp 1 session");
  append_text(text, mine.job);
  append_value(text, lower ? mine.rank : peer);
  append_value(text, lower ? peer : mine.rank);
  append(text, lower ? mine.self : theirs);
  append(text, lower ? theirs : mine.self);
  const proof whole = prove(mine.key, bytes_of(text));
  std::uint64_t name = 0;
  std::memcpy(&name, whole.data(), sizeof name);
  return name;
}

}  // namespace verbena::transport::tcp
