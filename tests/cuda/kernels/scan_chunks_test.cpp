// The maths of a scan in chunks on the host: the factors of cuda/kernels/scan/factors.cuh, one host
// thread for each lane, and what the products make of them, against the recurrence in fp64.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "cuda/kernels/scan/factors.cuh"

namespace fuseline::cuda {
namespace {

using namespace gpu::stream;

struct HostWarp {
  std::barrier<>* all;
  std::array<float, 32>* given;
  int the_lane;
  [[nodiscard]] int lane() const { return the_lane; }
  [[nodiscard]] float up(float x, int n) const { return from(x, the_lane - n); }
  [[nodiscard]] float down(float x, int n) const { return from(x, the_lane + n); }

 private:
  [[nodiscard]] float from(float x, int lane) const {
    (*given)[static_cast<std::size_t>(the_lane)] = x;
    all->arrive_and_wait();
    const bool exists = lane >= 0 && lane < 32;
    const float other =
        exists ? (*given)[static_cast<std::size_t>(lane)] : std::numeric_limits<float>::quiet_NaN();
    all->arrive_and_wait();
    return other;
  }
};

struct Tokens {
  std::vector<float> log_decay, share;  // fewer than 64 where a chunk ends early
};

std::unique_ptr<ChunkFactors> factors_of(const Tokens& tokens) {
  auto factors = std::make_unique<ChunkFactors>();
  std::barrier<> all(32);
  std::array<float, 32> given{};
  std::vector<std::thread> lanes;
  const auto token = [&](int t) {
    const auto at = static_cast<std::size_t>(t);
    return at < tokens.share.size() ? TokenFactors{tokens.log_decay[at], tokens.share[at]}
                                    : TokenFactors{};
  };
  for (int lane = 0; lane < 32; ++lane)
    lanes.emplace_back([&, lane] {
      chunk_factors(*factors, token(2 * lane), token(2 * lane + 1), HostWarp{&all, &given, lane});
    });
  for (std::thread& lane : lanes) lane.join();
  return factors;
}

Tokens random_tokens(std::mt19937& random, std::size_t count) {
  std::uniform_real_distribution<float> decay(-1.5F, 0.0F), share(0.0F, 2.0F);
  Tokens tokens;
  for (std::size_t t = 0; t < count; ++t) {
    tokens.log_decay.push_back(random() % 13 == 0 ? -60.0F : decay(random));
    tokens.share.push_back(share(random));
  }
  return tokens;
}

// Sums of up to 64 numbers whose sum is up to 500: a unit in the last place of 512 is 6e-5.
constexpr double kTolerance = 1e-4;

TEST(ScanChunks, FactorsAreDecaysBetweenTokens) {
  std::mt19937 random(11);
  for (const std::size_t count : {64U, 63U, 33U, 2U, 1U}) {
    const Tokens tokens = random_tokens(random, count);
    const auto f = factors_of(tokens);
    double sum = 0;
    for (int t = 0; t < chunk_tokens; ++t) {
      const auto at = static_cast<std::size_t>(t);
      const bool exists = at < count;
      if (exists) sum += static_cast<double>(tokens.log_decay[at]);
      EXPECT_NEAR(f->sum[t], sum, kTolerance);
      EXPECT_NEAR(f->open[t], std::exp(sum), kTolerance);
      EXPECT_EQ(f->share[t], exists ? tokens.share[at] : 0.0F);
      double behind = 0;
      for (std::size_t s = at + 1; s < count; ++s)
        behind += static_cast<double>(tokens.log_decay[s]);
      const double kept = exists ? static_cast<double>(tokens.share[at]) * std::exp(behind) : 0.0;
      EXPECT_NEAR(f->kept[t], kept, 1e-6 * (1 + kept)) << t << " of " << count;
    }
  }
}

// y and the state of a chunk from its factors, as the kernel's products make them, against tokens
// one after the other. One column of x, three numbers of its state.
TEST(ScanChunks, ProductsEqualTheRecurrence) {
  constexpr std::size_t N = 3;
  std::mt19937 random(12);
  std::normal_distribution<double> normal;
  std::array<double, N> walked{0.5, -1.0, 2.0};
  std::array<double, N> carried = walked;
  for (const std::size_t count : {64U, 64U, 41U}) {
    const Tokens tokens = random_tokens(random, count);
    const auto f = factors_of(tokens);
    std::vector<std::array<double, N>> k(count), q(count);
    std::vector<double> x(count);
    for (std::size_t t = 0; t < count; ++t) {
      x[t] = normal(random);
      for (std::size_t n = 0; n < N; ++n) {
        k[t][n] = normal(random);
        q[t][n] = normal(random);
      }
    }
    for (std::size_t t = 0; t < count; ++t) {
      double want = 0, got = 0;
      for (std::size_t n = 0; n < N; ++n) {
        walked[n] = std::exp(static_cast<double>(tokens.log_decay[t])) * walked[n] +
                    static_cast<double>(tokens.share[t]) * x[t] * k[t][n];
        want += walked[n] * q[t][n];
        got += static_cast<double>(f->open[t]) * carried[n] * q[t][n];
      }
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::size_t n = 0; n < N; ++n) score += k[s][n] * q[t][n];
        got += std::exp(static_cast<double>(f->sum[t] - f->sum[s])) *
               static_cast<double>(f->share[s]) * score * x[s];
      }
      EXPECT_NEAR(got, want, kTolerance * 10) << t;
    }
    for (std::size_t n = 0; n < N; ++n) {
      carried[n] *= static_cast<double>(f->open[chunk_tokens - 1]);
      for (std::size_t s = 0; s < count; ++s)
        carried[n] += static_cast<double>(f->kept[s]) * x[s] * k[s][n];
      EXPECT_NEAR(carried[n], walked[n], kTolerance) << n;
    }
  }
}

// A token may forget everything, and then nothing before it is left; no number becomes none.
TEST(ScanChunks, ATokenMayForgetEverything) {
  Tokens tokens;
  for (int t = 0; t < 64; ++t) {
    tokens.log_decay.push_back(t % 9 == 5 ? -std::numeric_limits<float>::infinity() : -0.25F);
    tokens.share.push_back(1.0F);
  }
  const auto f = factors_of(tokens);
  for (int t = 0; t < chunk_tokens; ++t) {
    ASSERT_TRUE(std::isfinite(f->sum[t]));
    EXPECT_NEAR(f->open[t], t < 5 ? std::exp(-0.25 * (t + 1)) : 0.0, 1e-6);
    EXPECT_NEAR(f->kept[t], t < 59 ? 0.0 : std::exp(-0.25 * (63 - t)), 1e-6) << t;
  }
  EXPECT_NEAR(std::exp(f->sum[13] - f->sum[5]), std::exp(-2.0), 1e-3);
}

}  // namespace
}  // namespace fuseline::cuda
