// How two ends of a new connection prove to each other that they belong to the job, and agree on where their session goes
// on. A state machine over bytes: it sees no socket and no clock. Nothing is believed before it is proven, and each
// message has a fixed size, so that whoever listens never reads more than is due.
//
//   caller                                                     callee
//     |-- hello: who calls whom, nonce A --------------------->|
//     |<-- challenge: nonce B, proof("callee", A, B) ----------|  the callee has proven itself
//     |-- proposal: resume point, proof("caller", A, B, point) >|  the caller has, too
//     |<-- answer: verdict, resume point, proof("answer", ...) -|
//     |== frames (wire.hpp) ==================================>|
//
// Every proof is over the kind of message, the job's name, both ranks, the instances of both processes and both nonces: none can
// be used a second time, in the other direction, by another rank, in another job, or after a restart.
#pragma once

#include "transport/session/resume.hpp"
#include "transport/tcp/secret.hpp"
#include "transport/tcp/wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace verbena::transport::tcp {

/// What a rank knows and proves with.
struct identity {
  secret key{};
  std::string job;  ///< its name
  std::uint32_t rank = 0;
  instance self{};
};

enum class verdict : std::uint32_t {
  agreed = 1,    ///< this connection it is
  yielded = 2,   ///< another one stands: both called at once, and the lower rank's counts
  outdated = 3,  ///< the proposal is older than what the callee knows: propose again
  refused = 4,   ///< the two cannot go on: something is lost for good
};

class handshake {
 public:
  enum class news : std::uint8_t {
    none,      ///< more bytes are due, or something is to be sent
    named,     ///< callee: peer() says it calls; go on with `greet`, or drop it
    proven,    ///< caller: the callee is who it should be; go on with `propose`
    proposed,  ///< callee: the caller is who it says, point() is its proposal; go on with `answer`
    answered,  ///< caller: said() is the verdict, point() the callee's
    failed,    ///< nothing that can be believed: drop the connection
  };

  /// The callee's end. `who` outlives it, here and below.
  explicit handshake(const identity& who) noexcept : who_(&who) {}
  /// The caller's.
  handshake(const identity& who, std::uint32_t callee, const instance& of_callee);

  /// Where the next bytes go, exactly as many as are due; empty: none are.
  std::span<std::byte> room() noexcept { return {in_.data() + got_, due_ - got_}; }
  /// So many were put there.
  news got(std::size_t bytes);
  /// What is to be sent, and that so much of it was.
  std::span<const std::byte> to_send() const noexcept { return {out_.data() + sent_, filled_ - sent_}; }
  void sent(std::size_t bytes) noexcept { sent_ += bytes; }

  void greet(const instance& of_caller);
  void propose(const session::resume_point& mine);
  void answer(verdict how, const session::resume_point& mine);

  std::uint32_t peer() const noexcept { return peer_; }
  const session::resume_point& point() const noexcept { return point_; }
  verdict said() const noexcept { return said_; }

 private:
  enum class stage : std::uint8_t { hello, challenge, proposal, answer, over };
  using nonce = std::array<std::byte, 32>;

  std::string statement(std::string_view label, std::span<const std::byte> more) const;
  void expect(stage next, std::size_t bytes) noexcept {
    at_ = next;
    due_ = bytes;
    got_ = 0;
  }
  template <class Message>
  void put(const Message& m) noexcept;
  template <class Message>
  Message taken() const noexcept;
  news on_hello();
  news on_challenge();
  news on_proposal();
  news on_answer();
  news fail() noexcept {
    expect(stage::over, 0);
    return news::failed;
  }

  static constexpr std::size_t hello_bytes = 56, longest_message = 64;

  const identity* who_;
  stage at_ = stage::hello;
  bool calls_ = false;
  std::uint32_t peer_ = 0;
  instance theirs_{};
  nonce of_caller_{}, of_callee_{};
  session::resume_point point_;
  verdict said_ = verdict::refused;
  std::array<std::byte, longest_message> in_{}, out_{};
  std::size_t due_ = hello_bytes, got_ = 0, filled_ = 0, sent_ = 0;
};

/// Both ends' name for the session between two processes; nobody else can know it.
std::uint64_t session_identity(const identity& mine, std::uint32_t peer, const instance& theirs);

}  // namespace verbena::transport::tcp
