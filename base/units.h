// Strong types for the quantities that cross public interfaces. Integers for bytes and FLOPs, so
// that counts compare with ==; doubles for times and rates.
#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

namespace fuseline {

// Reports a 64-bit overflow of a byte or FLOP count as an InputError (the sizes asked for are
// absurd).
[[noreturn]] void throw_count_overflow(const char* unit);

// A 64-bit count of one unit. Sums and products are checked for overflow.
template <class Unit>
class Count {
 public:
  constexpr Count() = default;
  constexpr explicit Count(std::int64_t value) : value_(value) {}
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  [[nodiscard]] constexpr double as_double() const { return static_cast<double>(value_); }

  constexpr Count& operator+=(Count other) {
    if (__builtin_add_overflow(value_, other.value_, &value_)) throw_count_overflow(Unit::name);
    return *this;
  }
  constexpr Count& operator-=(Count other) {
    if (__builtin_sub_overflow(value_, other.value_, &value_)) throw_count_overflow(Unit::name);
    return *this;
  }
  constexpr Count& operator*=(std::int64_t factor) {
    if (__builtin_mul_overflow(value_, factor, &value_)) throw_count_overflow(Unit::name);
    return *this;
  }
  friend constexpr Count operator+(Count a, Count b) { return a += b; }
  friend constexpr Count operator-(Count a, Count b) { return a -= b; }
  friend constexpr Count operator*(Count a, std::int64_t k) { return a *= k; }
  friend constexpr Count operator*(std::int64_t k, Count a) { return a *= k; }
  friend constexpr auto operator<=>(Count, Count) = default;

 private:
  std::int64_t value_ = 0;
};

// A real quantity of one unit, in its SI base unit.
template <class Unit>
class Real {
 public:
  constexpr Real() = default;
  constexpr explicit Real(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }
  constexpr Real& operator+=(Real other) { return value_ += other.value_, *this; }
  constexpr Real& operator-=(Real other) { return value_ -= other.value_, *this; }
  constexpr Real& operator*=(double k) { return value_ *= k, *this; }
  friend constexpr Real operator+(Real a, Real b) { return a += b; }
  friend constexpr Real operator-(Real a, Real b) { return a -= b; }
  friend constexpr Real operator*(Real a, double k) { return a *= k; }
  friend constexpr Real operator*(double k, Real a) { return a *= k; }
  friend constexpr Real operator/(Real a, double k) { return Real(a.value_ / k); }
  friend constexpr double operator/(Real a, Real b) { return a.value_ / b.value_; }
  friend constexpr auto operator<=>(Real, Real) = default;

 private:
  double value_ = 0;
};

struct ByteUnit {
  static constexpr const char* name = "bytes";
};
struct FlopUnit {
  static constexpr const char* name = "FLOPs";
};
struct SecondUnit {};
struct BytesPerSecondUnit {};
struct FlopsPerSecondUnit {};
struct HertzUnit {};
struct WattUnit {};
struct JouleUnit {};

using Bytes = Count<ByteUnit>;
using Flops = Count<FlopUnit>;
using Seconds = Real<SecondUnit>;
using BytesPerSecond = Real<BytesPerSecondUnit>;
using FlopsPerSecond = Real<FlopsPerSecondUnit>;
using Hertz = Real<HertzUnit>;
using Watts = Real<WattUnit>;
using Joules = Real<JouleUnit>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return Seconds(b.as_double() / r.value());
}
constexpr Seconds operator/(Flops f, FlopsPerSecond r) {
  return Seconds(f.as_double() / r.value());
}
constexpr Joules operator*(Watts w, Seconds s) { return Joules(w.value() * s.value()); }

constexpr Seconds microseconds(double us) { return Seconds(us * 1e-6); }
constexpr double to_us(Seconds s) { return s.value() * 1e6; }

// The size of one element. Several elements may share a byte: those of 4 bits do in pairs.
class ElementSize {
 public:
  constexpr ElementSize() = default;
  constexpr ElementSize(std::int64_t bytes) : bits_(8 * bytes) {}
  static constexpr ElementSize of_bits(std::int64_t bits) {
    ElementSize size;
    size.bits_ = bits;
    return size;
  }
  [[nodiscard]] constexpr std::int64_t bits() const { return bits_; }
  [[nodiscard]] constexpr double as_double() const { return static_cast<double>(bits_) / 8; }

  // Bytes of so many adjacent elements, rounded up to whole ones; and elements in so many bytes.
  friend constexpr std::int64_t operator*(std::int64_t elements, ElementSize size) {
    return (elements * size.bits_ + 7) / 8;
  }
  friend constexpr std::int64_t operator/(std::int64_t bytes, ElementSize size) {
    return bytes * 8 / size.bits_;
  }
  friend constexpr auto operator<=>(ElementSize, ElementSize) = default;

 private:
  std::int64_t bits_ = 0;
};

// a * b * c... with the overflow check of Count. A factor may be the size of an element; the
// factors before it are then elements that lie side by side.
template <class C, class... Factors>
constexpr C checked_product(std::int64_t first, Factors... rest) {
  C result(first);
  const auto multiply = [&result](const auto& factor) {
    if constexpr (std::is_same_v<std::decay_t<decltype(factor)>, ElementSize>) {
      if (factor.bits() % 8 == 0) {
        result *= factor.bits() / 8;
      } else {
        result = C(result.value() * factor);
      }
    } else {
      result *= static_cast<std::int64_t>(factor);
    }
  };
  (multiply(rest), ...);
  return result;
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace fuseline
