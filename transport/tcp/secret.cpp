#include "transport/tcp/secret.hpp"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/random.h>
#include <verbena/error.hpp>

#include <cerrno>
#include <cstring>

namespace verbena::transport::tcp {
namespace {

static_assert(crypto_auth_KEYBYTES == sizeof(secret) && crypto_auth_BYTES == sizeof(proof));

const unsigned char* raw(const std::byte* bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

void fill_randomly(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw error(errc::system, fmt::format("the kernel gives no random bytes: {}", std::strerror(errno)));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

secret make_secret() {
  secret made;
  fill_randomly(made);
  return made;
}

// crypto_auth needs no sodium_init: that chooses among implementations of other primitives and opens a random source.
proof prove(const secret& key, std::span<const std::byte> statement) noexcept {
  proof result;
  ::crypto_auth(reinterpret_cast<unsigned char*>(result.data()), raw(statement.data()), statement.size(),
                raw(key.data()));
  return result;
}

bool holds(const secret& key, std::span<const std::byte> statement, const proof& given) noexcept {
  return ::crypto_auth_verify(raw(given.data()), raw(statement.data()), statement.size(), raw(key.data())) ==
         0;
}

}  // namespace verbena::transport::tcp
