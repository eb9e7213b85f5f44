// Checks and times the attention kernels.
//
//   nvcc -std=c++20 -O2 -gencode=arch=compute_90a,code=sm_90a -I. -o attention_bench
//       cuda/bench/attention_bench.cu
//   ./attention_bench check [small]    every kernel against fp32, odd sizes, outputs poisoned first
//   ./attention_bench forward|decode|backward    medians of graph replays
//
// Inputs are normal random numbers. FLOPs count what a causal mask leaves.
#include <cmath>
#include <cstring>

#include "attention_check.cuh"
#include "attention_launch.cuh"

namespace fuseline::bench {
namespace {

const Case small_cases[] = {
    {"d 128, odd T = S, causal", 128, 2, 3, 3, 301, 301, true},
    {"d 128, one query, one key", 128, 1, 2, 1, 1, 1, true},
    {"d 128, not causal, T 77 S 203", 128, 2, 4, 2, 77, 203, false},
    {"d 128, causal offset T 130 S 389", 128, 2, 4, 1, 130, 389, true},
    {"d 128, fewer keys than queries", 128, 1, 2, 2, 200, 70, true},
    {"d 128, window 100 of 517", 128, 1, 4, 4, 517, 517, true, 100},
    {"d 128, window 300, offset", 128, 1, 2, 1, 150, 513, true, 300},
    {"d 64, odd T = S, causal", 64, 2, 3, 3, 333, 333, true},
    {"d 64, grouped 8 to 1, T 129", 64, 1, 8, 1, 129, 129, true},
    {"d 64, window 65, not causal", 64, 1, 2, 2, 140, 260, false, 65},
    {"d 80, odd T = S, causal", 80, 2, 3, 3, 301, 301, true},
    {"d 80, one head, offset", 80, 1, 1, 1, 70, 203, true},
    {"d 96, grouped 6 to 2, T 129", 96, 2, 6, 2, 129, 129, true},
    {"d 96, window 65, not causal", 96, 1, 2, 2, 140, 260, false, 65},
    {"d 112, fewer keys than queries", 112, 1, 2, 2, 200, 70, true},
    {"d 112, odd T = S, causal", 112, 2, 3, 3, 333, 333, true},
};
const Case large_cases[] = {
    {"d 128, T 2048, 32 heads", 128, 1, 32, 32, 2048, 2048, true},
    {"d 128, T 4096, 8 to 2 heads, B 2", 128, 2, 8, 2, 4096, 4096, true},
    {"d 64, T 2048, 25 heads", 64, 2, 25, 25, 2048, 2048, true},
    {"d 80, T 2048, 32 heads", 80, 1, 32, 32, 2048, 2048, true},
    {"d 96, T 2048, 32 heads", 96, 1, 32, 32, 2048, 2048, true},
    {"d 112, T 2048, 64 to 8 heads", 112, 1, 64, 8, 2048, 2048, true},
};

const Case generic_cases[] = {
    {"d 32, odd T = S, causal", 32, 2, 3, 3, 301, 301, true},
    {"d 80, grouped 6 to 2, offset", 80, 2, 6, 2, 70, 203, true},
    {"d 96, window 65", 96, 1, 2, 2, 217, 217, true, 65},
    {"d 128, fewer keys than queries", 128, 1, 2, 1, 200, 70, true},
    {"d 256, grouped, not causal", 256, 1, 4, 2, 77, 133, false},
};
const Case decode_cases[] = {
    {"d 128, one token, S 1037", 128, 3, 8, 8, 1, 1037, true},
    {"d 128, 64 heads to 8, S 4099", 128, 2, 64, 8, 1, 4099, true},
    {"d 128, 5 tokens, 8 to 2, S 333", 128, 2, 8, 2, 5, 333, true},
    {"d 128, window 100", 128, 1, 4, 4, 1, 999, true, 100},
    {"d 128, one key", 128, 2, 4, 4, 1, 1, true},
    {"d 64, 16 tokens, 4 to 1, S 65", 64, 1, 4, 1, 16, 65, true},
    {"d 80, 3 tokens, S 517", 80, 1, 6, 2, 3, 517, true},
    {"d 256, one token, S 700", 256, 1, 4, 1, 1, 700, true},
    {"d 128, many sequences, 6 to 2", 128, 53, 6, 2, 1, 613, true},
    {"d 128, many, window 333", 128, 60, 4, 4, 1, 999, true, 333},
    {"d 64, many, 3 tokens, 4 to 2", 64, 71, 4, 2, 3, 517, true},
    {"d 80, many, 20 rows, 20 to 1", 80, 90, 20, 1, 1, 450, true},
    {"d 256, many, S 700", 256, 40, 4, 2, 1, 700, true},
};

const Case wide_cases[] = {
    {"d 144, odd T = S, causal", 144, 2, 3, 3, 301, 301, true},
    {"d 192, grouped 6 to 2, T 129", 192, 2, 6, 2, 129, 129, true},
    {"d 208, window 65, not causal", 208, 1, 2, 2, 140, 260, false, 65},
    {"d 256, one head, offset", 256, 1, 1, 1, 70, 203, true},
    {"d 256, odd T = S, causal", 256, 2, 3, 3, 333, 333, true},
};

// Calls f.template operator()<d>() for the case's head width, if it is one of `widths`.
template <int... widths, class F>
void with_width(int d, F&& f) {
  ((d == widths ? f.template operator()<widths>() : void()), ...);
}

template <class T>
void check_sm90(const Case& c) {
  with_width<64, 80, 96, 112, 128>(c.d, [&]<int d>() {
    check_forward<T>("forward_sm90", c, launch_forward_sm90<T, d>);
    check_gradient<T>("gradient_sm90", c, false, launch_gradient_sm90<T, d>);
    if (c.heads != c.kv_heads)
      check_gradient<T>("gradient_sm90", c, true, launch_gradient_sm90<T, d>);
  });
}
template <class T>
void check_wide(const Case& c) {
  with_width<144, 192, 208, 256>(
      c.d, [&]<int d>() { check_forward<T>("forward_sm90", c, launch_forward_sm90<T, d>); });
}
template <class T>
void check_generic(const Case& c) {
  with_width<32, 80, 96, 128, 256>(c.d, [&]<int d>() {
    check_forward<T>("generic", c, launch_forward_generic<T, d>);
    check_gradient<T>("generic", c, false, launch_gradient_generic<T, d>);
    if (c.heads != c.kv_heads) check_gradient<T>("generic", c, true, launch_gradient_generic<T, d>);
  });
}
template <class T>
void check_decode(const Case& c) {
  with_width<64, 80, 128, 256>(c.d, [&]<int d>() {
    const DecodeWorkspace<T, d> work(shape_of(c));
    // Twice: the counters must be as before.
    for (int i = 0; i < 2; ++i)
      check_forward<T>("decode", c, [&](const Inputs<T>& in, T* y, float* lse, cudaStream_t s) {
        launch_decode<T, d>(in, y, lse, work, s);
      });
  });
}

int check_all(bool small_only) {
  for (const Case& c : small_cases) check_sm90<gpu::bf16>(c);
  for (const Case& c : wide_cases) check_wide<gpu::bf16>(c);
  for (const Case& c : generic_cases) check_generic<gpu::bf16>(c);
  for (const Case& c : decode_cases) check_decode<gpu::bf16>(c);
  if (!small_only) {
    for (const Case& c : small_cases) check_sm90<gpu::fp16>(c);
    for (const Case& c : large_cases) check_sm90<gpu::bf16>(c);
  }
  std::printf("%s\n", failures == 0 ? "all checks passed" : "CHECKS FAILED");
  return failures == 0 ? 0 : 1;
}

double causal_flops(const Case& c) {
  return 2.0 * c.batch * c.heads * c.q_tokens * static_cast<double>(c.kv_tokens) * c.d;
}

void time_forward() {
  using T = gpu::bf16;
  const Case cases[] = {
      {"B 1, T 2048, H 32, d 128", 128, 1, 32, 32, 2048, 2048, true},
      {"B 4, T 2048, H 32, d 128", 128, 4, 32, 32, 2048, 2048, true},
      {"B 1, T 8192, H 32, d 128", 128, 1, 32, 32, 8192, 8192, true},
      {"B 1, T 2048, H 64/8, d 128", 128, 1, 64, 8, 2048, 2048, true},
      {"B 4, T 2048, H 25, d 64", 64, 4, 25, 25, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 64", 64, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 80", 80, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 96", 96, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 112", 112, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 2048, H 16, d 192", 192, 1, 16, 16, 2048, 2048, true},
      {"B 1, T 2048, H 16, d 256", 256, 1, 16, 16, 2048, 2048, true},
      {"B 1, T 8192, H 16, d 256", 256, 1, 16, 16, 8192, 8192, true},
  };
  std::printf("forward, causal, bf16                       us  TFLOP/s\n");
  for (const Case& c : cases) {
    const Inputs<T> in(c);
    const Buffer<T> y(in.y_size());
    const Buffer<float> lse(in.sums());
    std::vector<Contender> contenders = {
        {"forward_sm90", [&](int, cudaStream_t s) {
           with_width<64, 80, 96, 112, 128, 192, 256>(
               c.d, [&]<int d>() { launch_forward_sm90<T, d>(in, y.data(), lse.data(), s); });
         }}};
    time_alternating(contenders, 1, 10, 15);
    const double us = median(contenders[0].times_us);
    std::printf("%-34s%12.1f %8.0f\n", c.name, us, causal_flops(c) / us * 1e-6);
  }
}

void time_backward() {
  using T = gpu::bf16;
  const Case cases[] = {
      {"B 1, T 2048, H 32, d 128", 128, 1, 32, 32, 2048, 2048, true},
      {"B 4, T 2048, H 32, d 128", 128, 4, 32, 32, 2048, 2048, true},
      {"B 1, T 8192, H 32, d 128", 128, 1, 32, 32, 8192, 8192, true},
      {"B 1, T 2048, H 64/8, d 128", 128, 1, 64, 8, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 64", 64, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 80", 80, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 96", 96, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 2048, H 32, d 112", 112, 1, 32, 32, 2048, 2048, true},
      {"B 1, T 10000, H 16, d 64", 64, 1, 16, 16, 10000, 10000, true},
  };
  std::printf(
      "backward, causal, bf16             dk, dv us       dq us     both us"
      "  dk, dv per head  TFLOP/s of both\n");
  for (const Case& c : cases)
    with_width<64, 80, 96, 112, 128>(c.d, [&]<int d>() {
      const Inputs<T> in(c);
      const Buffer<T> dy(in.y_size()), dk(in.y_size()), dv(in.y_size());
      const Buffer<float> lse(in.sums()), delta(in.sums()), dq(in.y_size());
      fill_normal(delta, 6);
      launch_forward_sm90<T, d>(in, dy.data(), lse.data(), cudaStream_t{});
      fill_normal(dy, 5);
      const Gradient<T> g{dy.data(), lse.data(), delta.data(), dq.data(), dk.data(), dv.data()};
      Gradient<T> per_head = g;
      per_head.per_query_head = true;
      std::vector<Contender> contenders = {
          {"dk, dv",
           [&](int, cudaStream_t s) { launch_gradient_pass<T, d, true, T>(in, g, g.dk, g.dv, s); }},
          {"dq",
           [&](int, cudaStream_t s) {
             launch_gradient_pass<T, d, false, float>(in, g, g.dq, static_cast<float*>(nullptr), s);
           }},
          {"both", [&](int, cudaStream_t s) { launch_gradient_sm90<T, d>(in, g, s); }},
          {"dk, dv per query head",
           [&](int, cudaStream_t s) {
             launch_gradient_pass<T, d, true, T>(in, per_head, g.dk, g.dv, s);
           }},
      };
      time_alternating(contenders, 1, 5, 11);
      std::printf("%-34s", c.name);
      for (const Contender& k : contenders) std::printf("%12.1f", median(k.times_us));
      std::printf("%9.0f\n", 2.5 * causal_flops(c) / median(contenders[2].times_us) * 1e-6);
    });
}

void time_decode() {
  using T = gpu::bf16;
  const Case cases[] = {
      {"B 1, H 32, S 2048", 128, 1, 32, 32, 1, 2048, true},
      {"B 16, H 32, S 2048", 128, 16, 32, 32, 1, 2048, true},
      {"B 1, H 32/8, S 8192", 128, 1, 32, 8, 1, 8192, true},
      {"B 16, H 64/8, S 8192", 128, 16, 64, 8, 1, 8192, true},
      {"B 64, H 32/8, S 2048", 128, 64, 32, 8, 1, 2048, true},
      {"B 100, H 24/8, S 600", 128, 100, 24, 8, 1, 600, true},
      {"B 100, H 24/8, S 1500", 128, 100, 24, 8, 1, 1500, true},
      {"B 24, H 32/8, S 3000", 128, 24, 32, 8, 1, 3000, true},
      {"B 7, H 40/40, S 1000", 128, 7, 40, 40, 1, 1000, true},
      {"B 3, H 64/8, S 16000", 128, 3, 64, 8, 1, 16000, true},
      {"B 128, H 32/8, S 200", 128, 128, 32, 8, 1, 200, true},
      {"B 8, H 64/8, S 5000", 128, 8, 64, 8, 1, 5000, true},
      {"B 4, H 32/8, S 32000", 128, 4, 32, 8, 1, 32000, true},
  };
  std::printf("decode, T 1, d 128, bf16      splits       us     GB/s\n");
  for (const Case& c : cases) {
    const double bytes = 4.0 * c.batch * c.kv_heads * c.kv_tokens * c.d;
    // Caches are rotated so that they come from HBM.
    const int sets = std::max(2, static_cast<int>(400e6 / bytes));
    std::vector<Inputs<T>> in;
    for (int i = 0; i < sets; ++i) in.emplace_back(c, static_cast<unsigned>(i));
    const Buffer<T> y(in[0].y_size());
    const DecodeWorkspace<T, 128> work(in[0].shape);
    std::vector<Contender> contenders = {
        {"decode",
         [&](int i, cudaStream_t s) { launch_decode<T, 128>(in[i], y.data(), nullptr, work, s); }}};
    time_alternating(contenders, sets, 2 * sets, 15);
    const double us = median(contenders[0].times_us);
    std::printf("%-30s %5d %8.1f %8.0f\n", c.name, work.splits, us, bytes / us * 1e-3);
  }
}

int run(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "check";
  if (what == "check") return check_all(count > 2 && std::string(words[2]) == "small");
  if (what == "forward") time_forward();
  if (what == "backward") time_backward();
  if (what == "decode") time_decode();
  return 0;
}

}  // namespace
}  // namespace fuseline::bench

int main(int count, char** words) {
  try {
    return fuseline::bench::run(count, words);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "attention_bench: %s\n", problem.what());
    return 70;
  }
}
