#include "launcher/hosts/proof.hpp"

#include "base/check.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace verbena::launcher {
namespace {

static_assert(crypto_auth_KEYBYTES == sizeof(job_secret) && crypto_auth_BYTES == sizeof(proof_code));

void begin() {
  base::check(sodium_init() >= 0, "libsodium starts");
}

/// What is authenticated: a role, a number, both nonces, the agent's first, and the place.
std::string statement(std::string_view role, std::uint32_t index, const nonce& agents, const nonce& heads,
                      std::string_view place) {
  std::string text{role};
  for (unsigned shift = 0; shift < 32; shift += 8) text += static_cast<char>(index >> shift & 0xff);
  text.append(reinterpret_cast<const char*>(agents.data()), agents.size());
  text.append(reinterpret_cast<const char*>(heads.data()), heads.size());
  text.append(place);
  return text;
}

proof_code code_of(const job_secret& secret, const std::string& text) {
  proof_code code;
  crypto_auth(code.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), secret.data());
  return code;
}

bool verify(const job_secret& secret, const unsigned char* code, const std::string& text) {
  return crypto_auth_verify(code, reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                            secret.data()) == 0;
}

template <std::size_t Size>
void append(std::string& to, const std::array<unsigned char, Size>& bytes) {
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

job_secret draw_secret() {
  begin();
  job_secret secret;
  randombytes_buf(secret.data(), secret.size());
  return secret;
}

nonce draw_nonce() {
  begin();
  nonce number;
  randombytes_buf(number.data(), number.size());
  return number;
}

std::string make_challenge(const nonce& ours) {
  std::string bytes;
  append(bytes, challenge_magic);
  append(bytes, ours);
  return bytes;
}

std::optional<nonce> read_challenge(std::span<const unsigned char> bytes) {
  if (bytes.size() != challenge_bytes ||
      !std::equal(challenge_magic.begin(), challenge_magic.end(), bytes.begin()))
    return std::nullopt;
  nonce theirs;
  std::copy(bytes.begin() + challenge_magic.size(), bytes.end(), theirs.begin());
  return theirs;
}

std::string make_claim(const job_secret& secret, std::uint32_t index, const nonce& theirs, const nonce& ours,
                       std::string_view place) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(index >> shift & 0xff);
  append(bytes, ours);
  append(bytes, code_of(secret, statement("agent", index, ours, theirs, place)));
  return bytes;
}

std::optional<claim> check_claim(const job_secret& secret, std::span<const unsigned char> bytes,
                                 const nonce& ours, std::string_view place) {
  if (bytes.size() != claim_bytes) return std::nullopt;
  claim made;
  for (std::size_t i = 4; i-- > 0;) made.index = made.index << 8 | bytes[i];
  std::copy_n(bytes.begin() + 4, made.theirs.size(), made.theirs.begin());
  if (!verify(secret, bytes.data() + 4 + sizeof(nonce), statement("agent", made.index, made.theirs, ours, place)))
    return std::nullopt;
  return made;
}

std::string make_answer(const job_secret& secret, const nonce& theirs, const nonce& ours, std::string_view place) {
  std::string bytes;
  append(bytes, code_of(secret, statement("head", 0, theirs, ours, place)));
  return bytes;
}

bool check_answer(const job_secret& secret, std::span<const unsigned char> bytes, const nonce& theirs,
                  const nonce& ours, std::string_view place) {
  return bytes.size() == answer_bytes && verify(secret, bytes.data(), statement("head", 0, ours, theirs, place));
}

std::string to_hex(const job_secret& secret) {
  std::array<char, 2 * sizeof(job_secret) + 1> text;
  sodium_bin2hex(text.data(), text.size(), secret.data(), secret.size());
  return text.data();
}

std::optional<job_secret> from_hex(std::string_view text) {
  job_secret secret;
  std::size_t size = 0;
  if (text.size() != 2 * secret.size() ||
      sodium_hex2bin(secret.data(), secret.size(), text.data(), text.size(), nullptr, &size, nullptr) != 0 ||
      size != secret.size())
    return std::nullopt;
  return secret;
}

}  // namespace verbena::launcher
