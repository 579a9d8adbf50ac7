// Who is at the other end of a connection? Both sides prove that they know the job's secret before either believes a byte of
// the other, by authentication codes over numbers that are used once (libsodium's crypto_auth: HMAC-SHA-512-256). The secret
// itself reaches an agent through the standard input of whatever starts it, never on a command line.
//
//   rdmarun                                     agent
//      |-- challenge: magic, nonce ------------>|
//      |<- claim: index, nonce, code -----------|   code over "agent", index, both nonces and the place
//      |-- answer: code ----------------------->|   code over "head", both nonces and the place
//
// The place is where the agent believes to have connected, "ADDRESS PORT": it tries many, and who listens at one of them on its own
// host cannot pass the talk on to rdmarun and stay in between.
//
// A replay proves nothing, since each side draws a nonce of its own. What comes afterwards is authenticated by the connection,
// and not encrypted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace verbena::launcher {

using job_secret = std::array<unsigned char, 32>;
using nonce = std::array<unsigned char, 32>;
using proof_code = std::array<unsigned char, 32>;

inline constexpr std::array<unsigned char, 8> challenge_magic = {'V', 'e', 'r', 'b', 'e', 'n', 'a', '1'};
inline constexpr std::size_t challenge_bytes = challenge_magic.size() + sizeof(nonce);
inline constexpr std::size_t claim_bytes = 4 + sizeof(nonce) + sizeof(proof_code);
inline constexpr std::size_t answer_bytes = sizeof(proof_code);

job_secret draw_secret();
nonce draw_nonce();

std::string make_challenge(const nonce& ours);
/// The nonce of a challenge, or nothing if it is none.
std::optional<nonce> read_challenge(std::span<const unsigned char> bytes);

std::string make_claim(const job_secret& secret, std::uint32_t index, const nonce& theirs, const nonce& ours,
                       std::string_view place);
struct claim {
  std::uint32_t index = 0;
  nonce theirs{};
};
/// Nothing: whoever wrote it does not know the secret.
std::optional<claim> check_claim(const job_secret& secret, std::span<const unsigned char> bytes,
                                 const nonce& ours, std::string_view place);

std::string make_answer(const job_secret& secret, const nonce& theirs, const nonce& ours, std::string_view place);
bool check_answer(const job_secret& secret, std::span<const unsigned char> bytes, const nonce& theirs,
                  const nonce& ours, std::string_view place);

std::string to_hex(const job_secret& secret);
std::optional<job_secret> from_hex(std::string_view text);

}  // namespace verbena::launcher
