// Keyed hashes: SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104). The same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace fuseline::lab {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(const std::string& text);

// Who does not know `key` can neither make nor predict it.
Digest hmac_sha256(const std::string& key, const std::string& text);

// The first `digits` hexadecimal digits, at most 64.
std::string hex_of(const Digest& digest, std::size_t digits = 64);

}  // namespace fuseline::lab
