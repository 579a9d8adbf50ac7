// The job's secret, and proofs that one knows it: HMAC-SHA-512-256 of libsodium (crypto_auth). The only header of the
// fabric behind which there is cryptography. It must not know what is proven.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace verbena::transport::tcp {

/// 32 random bytes, the same on all ranks of a job and known to nobody else.
using secret = std::array<std::byte, 32>;
using proof = std::array<std::byte, 32>;

/// Throws error{errc::system} if the kernel gives no random bytes.
void fill_randomly(std::span<std::byte> bytes);
secret make_secret();

proof prove(const secret& key, std::span<const std::byte> statement) noexcept;
/// In a time that does not depend on the bytes.
bool holds(const secret& key, std::span<const std::byte> statement, const proof& given) noexcept;

}  // namespace verbena::transport::tcp
