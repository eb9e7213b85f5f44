#include "sim/executor/float_formats.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "model/config/code_table.h"

namespace fuseline::executor {

namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffffU;  // all but the sign
constexpr std::uint32_t kInfinity = 0x7f800000U;

template <class Convert>
void widen16(const std::byte* stored, float* values, std::int64_t count, Convert convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, stored + 2 * i, 2);
    values[i] = convert(bits);
  }
}

template <class Value, class Convert>
void narrow16(const Value* values, std::byte* stored, std::int64_t count, Convert convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t bits = convert(values[i]);
    std::memcpy(stored + 2 * i, &bits, 2);
  }
}

void widen_codes(Dtype type, const std::byte* stored, float* values, std::int64_t count) {
  const CodeTable& table = code_table(type);
  if (size_of(type).bits() == 8) {
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = table.value(std::to_integer<std::uint8_t>(stored[i]));
    return;
  }
  FUSELINE_ASSERT(count % 2 == 0, "half a byte");
  for (std::int64_t i = 0; i < count; i += 2) {
    const auto both = std::to_integer<std::uint8_t>(stored[i / 2]);
    values[i] = table.value(both & 0xfU);
    values[i + 1] = table.value(both >> 4U);
  }
}

template <class Value>
void narrow_codes(Dtype type, std::byte* stored, std::int64_t count, Value value) {
  const CodeTable& table = code_table(type);
  if (size_of(type).bits() == 8) {
    for (std::int64_t i = 0; i < count; ++i)
      stored[i] = static_cast<std::byte>(table.code(value(i)));
    return;
  }
  FUSELINE_ASSERT(count % 2 == 0, "half a byte");
  for (std::int64_t i = 0; i < count; i += 2)
    stored[i / 2] = static_cast<std::byte>(table.code(value(i)) | table.code(value(i + 1)) << 4U);
}

}  // namespace

std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  // Half of the last kept place is added, less one where the kept part is even: ties go to even.
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & kMagnitude) > kInfinity;
  return static_cast<std::uint16_t>((is_nan ? bits | 0x00400000U : rounded) >> 16);
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_fp16(float value) {
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;     // 2^-14
  constexpr std::uint32_t kBeyond = 0x47800000U;             // 2^16
  constexpr std::uint32_t kBiasChange = (127U - 15U) << 23;  // exponents of the two formats
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kMagnitude;
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= kBeyond) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < kSmallestNormal) {
    // In the binade of 1/2 the last place of fp32 is 2^-24, which is the last place of fp16's
    // subnormals: the addition rounds.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    const std::uint32_t steps =
        std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5F);
    return static_cast<std::uint16_t>(sign | steps);
  }
  // A carry out of the mantissa raises the exponent, up to that of infinity.
  const std::uint32_t rounded = magnitude - kBiasChange + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

float fp16_to_float(std::uint16_t stored) {
  const std::uint32_t bits = stored;
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t widened = exponent == 0x1fU ? 0xffU : exponent + (127U - 15U);
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(value)) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

void widen(Dtype type, const std::byte* stored, float* values, std::int64_t count) {
  switch (type) {
    case Dtype::bf16:
      return widen16(stored, values, count, bf16_to_float);
    case Dtype::fp16:
      return widen16(stored, values, count, fp16_to_float);
    case Dtype::fp32:
      std::memcpy(values, stored, static_cast<std::size_t>(count) * sizeof(float));
      return;
    default:
      return widen_codes(type, stored, values, count);
  }
}

void narrow(Dtype type, const float* values, std::byte* stored, std::int64_t count) {
  switch (type) {
    case Dtype::bf16:
      return narrow16(values, stored, count, float_to_bf16);
    case Dtype::fp16:
      return narrow16(values, stored, count, float_to_fp16);
    case Dtype::fp32:
      std::memcpy(stored, values, static_cast<std::size_t>(count) * sizeof(float));
      return;
    default:
      return narrow_codes(type, stored, count,
                          [&](std::int64_t i) { return static_cast<double>(values[i]); });
  }
}

void narrow(Dtype type, const double* values, std::byte* stored, std::int64_t count) {
  switch (type) {
    case Dtype::bf16:
      return narrow16(values, stored, count,
                      [](double v) { return float_to_bf16(round_to_odd(v)); });
    case Dtype::fp16:
      return narrow16(values, stored, count,
                      [](double v) { return float_to_fp16(round_to_odd(v)); });
    case Dtype::fp32:
      for (std::int64_t i = 0; i < count; ++i) {
        const float value = static_cast<float>(values[i]);
        std::memcpy(stored + 4 * i, &value, sizeof value);
      }
      return;
    default:
      return narrow_codes(type, stored, count, [&](std::int64_t i) { return values[i]; });
  }
}

float rounded_to(Dtype type, float value) {
  std::array<std::byte, 4> stored{};
  const std::array<float, 2> both = {value, 0.0F};
  std::array<float, 2> back{};
  const std::int64_t count = size_of(type).bits() < 8 ? 2 : 1;
  narrow(type, both.data(), stored.data(), count);
  widen(type, stored.data(), back.data(), count);
  return back[0];
}

}  // namespace fuseline::executor
