// Comparison of attention's results with the fp32 reference.
#pragma once

#include <cmath>

#include "attention_inputs.cuh"

namespace fuseline::bench {

// Twice the rounding of a result of the type, for the rounded probabilities and result; the
// measured error must stay below.
template <class T>
constexpr double allowed = std::is_same_v<T, gpu::bf16> ? 5e-3 : 7e-4;

inline int failures = 0;
inline void report(const char* kernel, const char* name, const char* what, double error,
                   double limit) {
  const bool fine = error < limit;  // false for NaN
  if (!fine) ++failures;
  std::printf("%-14s %-34s %-4s error %.2e (below %.0e) %s\n", kernel, name, what, error, limit,
              fine ? "ok" : "WRONG");
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // -inf of a query that sees no key
    const double x = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(x <= most)) most = x;
  }
  return most;
}

template <class T, class Launch>
void check_forward(const char* kernel, const Case& c, Launch&& launch) {
  const Inputs<T> in(c, static_cast<unsigned>(c.q_tokens * 7 + c.d));
  const ForwardReference<T> reference(in);
  const Buffer<T> y(in.y_size());
  const Buffer<float> lse(in.sums());
  y.poison();
  lse.poison();
  launch(in, y.data(), lse.data(), cudaStream_t{});
  FUSELINE_CUDA(cudaDeviceSynchronize());
  report(kernel, c.name, "y", relative_error(y.host(), reference.y.host()), allowed<T>);
  report(kernel, c.name, "lse", largest_difference(lse.host(), reference.lse.host()), 1e-3);
}

// delta[(b·H + h)·T + t] = sum over a head's columns of dy · y.
template <class T>
__global__ void delta_kernel(const T* dy, const float* y, int heads, int tokens, int d,
                             float* delta) {
  const int m = static_cast<int>(blockIdx.x), h = static_cast<int>(blockIdx.y);
  const long long at = (static_cast<long long>(m) * heads + h) * d;
  float x = 0;
  for (int c = static_cast<int>(threadIdx.x); c < d; c += static_cast<int>(blockDim.x))
    x += static_cast<float>(dy[at + c]) * y[at + c];
  x = block_sum(x);
  if (threadIdx.x == 0) delta[(m / tokens * heads + h) * tokens + m % tokens] = x;
}

// dk and dv lie in [B·kv_rows, heads·d]; rows past S are nobody's. Sums over the heads that share a
// key, and takes the rows that exist.
template <class T>
std::vector<float> kv_rows_of(const std::vector<T>& x, const gpu::AttentionShape& s, int d,
                              int heads) {
  const int shared = heads / s.kv_heads;
  std::vector<float> out;
  for (int b = 0; b < s.batch; ++b)
    for (int r = 0; r < s.kv_tokens; ++r)
      for (int c = 0; c < s.kv_heads * d; ++c) {
        float sum = 0;
        for (int i = 0; i < shared; ++i)
          sum += static_cast<float>(x[(static_cast<std::size_t>(b) * s.kv_rows + r) * heads * d +
                                      (c / d * shared + i) * d + c % d]);
        out.push_back(sum);
      }
  return out;
}

template <class T, class Launch>
void check_gradient(const char* kernel, const Case& c, bool per_query_head, Launch&& launch) {
  const Inputs<T> in(c, static_cast<unsigned>(c.q_tokens * 5 + c.d));
  const auto& s = in.shape;
  const ForwardReference<T> forward(in);
  const Buffer<T> dy(in.y_size());
  fill_normal(dy, 77);
  const Buffer<float> delta(in.sums()), dq(in.y_size()), reference_dq(in.y_size());
  delta_kernel<<<dim3(static_cast<unsigned>(in.q_rows()), static_cast<unsigned>(s.heads)), 64>>>(
      dy.data(), forward.y.data(), s.heads, s.q_tokens, c.d, delta.data());
  // The reference writes dk and dv with the operands' row distance.
  const std::size_t kv = static_cast<std::size_t>(in.kv_rows()) * in.operands.kv_ld;
  const Buffer<float> reference_dk(kv), reference_dv(kv);
  reference_dk.zero();
  reference_dv.zero();
  attention_reference<T><<<dim3(static_cast<unsigned>(s.q_tokens), static_cast<unsigned>(s.heads),
                                static_cast<unsigned>(s.batch)),
                           128, 8 * s.kv_tokens>>>(in.operands, s, c.d, forward.y.data(), nullptr,
                                                   dy.data(), reference_dq.data(),
                                                   reference_dk.data(), reference_dv.data());
  const int heads = per_query_head ? s.heads : s.kv_heads;
  const std::size_t size = static_cast<std::size_t>(in.kv_rows()) * heads * c.d;
  const Buffer<T> dk(size), dv(size);
  dk.poison();
  dv.poison();
  dq.poison();
  launch(in,
         Gradient<T>{dy.data(), forward.lse.data(), delta.data(), dq.data(), dk.data(), dv.data(),
                     per_query_head},
         cudaStream_t{});
  FUSELINE_CUDA(cudaDeviceSynchronize());
  const auto reference_rows = [&](const Buffer<float>& all) {
    const std::vector<float> x = all.host();
    std::vector<float> out;
    for (int b = 0; b < s.batch; ++b)
      for (int r = 0; r < s.kv_tokens; ++r)
        for (int col = 0; col < s.kv_heads * c.d; ++col)
          out.push_back(x[(static_cast<std::size_t>(b) * s.kv_rows + r) * in.operands.kv_ld + col]);
    return out;
  };
  report(kernel, c.name, "dq", relative_error(dq.host(), reference_dq.host()), 2 * allowed<T>);
  report(kernel, c.name, "dk",
         relative_error(kv_rows_of(dk.host(), s, c.d, heads), reference_rows(reference_dk)),
         2 * allowed<T>);
  report(kernel, c.name, "dv",
         relative_error(kv_rows_of(dv.host(), s, c.d, heads), reference_rows(reference_dv)),
         2 * allowed<T>);
}

}  // namespace fuseline::bench
